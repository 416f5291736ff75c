package httpx_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// during runs a function while a request has a slot. The request reads the response at the path.
func (w *world) during(path string, do func()) {
	w.tb.Helper()
	ran := false
	w.store.hold.Store(new(func() { ran = true; do() }))
	if w.do("GET", path, ""); !ran {
		w.tb.Error("no request had a slot")
	}
}

// A request that waited without success gets Retry-After and keeps its connection. It uses up no quota and no idempotency key. Public
// routes reply meanwhile, requests without a valid key get 401, and lists have slots of their own.
func TestOverloadReturnsRetryAfter(t *testing.T) {
	w := newWorld(t, nil)
	campaign, one := w.pair()
	list := campaign + "/responses"
	w.limit(100, nil)
	w.oneSlot()
	w.log.Reset()
	w.during(list+"/"+nobody, func() {
		for range 3 {
			for _, a := range []*answer{
				w.do("POST", list, plainResponse, once("k")), w.do("GET", one, ""), w.do("DELETE", one, ""),
			} {
				a.is(503, "unavailable")
				if a.header.Get("Retry-After") == "" || a.header.Get("X-Ratelimit-Remaining") != "" || a.header.Get("Connection") != "" {
					a.errorf("header %v", a.header)
				}
			}
		}
		for _, path := range []string{"/", "/healthz", "/readyz", "/openapi.json", list} {
			w.do("GET", path, "").is(200, "")
		}
		w.do("GET", one, "", as("nonsense")).is(401, "unauthenticated")
	})
	if n := strings.Count(w.log.String(), "\n"); n != 1 || !strings.Contains(w.log.String(), "level=WARN") {
		t.Errorf("logged %d lines: %s", n, w.log)
	}
	a := w.do("POST", list, plainResponse, once("k")).is(201, "").fresh()
	// The request that had the slot, the list, and this one.
	equal(t, a.number("X-Ratelimit-Remaining"), 97, "%d requests left")
	equal(t, w.total(list), 2, "%d responses")
}

// An account that sent a large body has slots of its own for a minute, so that others needn't wait for it.
func TestHeavyAccountsHaveSlotsOfTheirOwn(t *testing.T) {
	w := newWorld(t, nil)
	w.oneSlot()
	_, one := w.pair()
	list := w.campaign(plainCampaign, as(w.other.key)) + "/responses"
	body := answers(`{"a":{"value":["` + strings.Repeat("x", 300<<10) + `"]}}`)
	large := list + "/" + w.do("POST", list, body, as(w.other.key)).is(201, "").text("uuid")
	w.during(one, func() { w.do("GET", large, "", as(w.other.key)).is(200, "") })
	w.now = w.now.Add(2 * time.Minute)
	w.during(one, func() { w.do("GET", list+"/"+nobody, "", as(w.other.key)).is(503, "unavailable") })
}

// After a body of 1 MiB or more an account's slot stays taken for a while if requests of others were in progress, and only then.
func TestLongBodiesTakeTurnsWithOthers(t *testing.T) {
	w := newWorld(t, nil)
	w.oneSlot()
	_, one := w.pair()
	list := w.campaign(plainCampaign, as(w.other.key)) + "/responses"
	send := func() *answer {
		return w.do("POST", list, answers(`{"a":{"value":["`+strings.Repeat("x", 1<<20)+`"]}}`), as(w.other.key)).is(201, "")
	}
	their := list + "/" + send().text("uuid")
	w.do("GET", their, "", as(w.other.key)).is(200, "")
	w.during(one, func() {
		send()
		w.do("GET", their, "", as(w.other.key)).is(503, "unavailable")
	})
}

// An account's exports read one at a time.
func TestExportsTakeTurns(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	w.response(campaign)
	var group sync.WaitGroup
	export := func() { w.do("GET", campaign+"/responses.ndjson", "").is(200, "") }
	pages := 0
	w.store.pages = func() error {
		if pages++; pages == 2 { // the first one finds where the export ends
			group.Go(export)
			w.waiting(1)
		}
		return nil
	}
	export()
	group.Wait()
}

// waiting waits until n requests wait for a slot.
func (w *world) waiting(n int) {
	w.tb.Helper()
	for end := time.Now().Add(patience); w.bare.Waiting() != n; runtime.Gosched() {
		if time.Now().After(end) {
			w.tb.Fatalf("%d requests wait, want %d", w.bare.Waiting(), n)
		}
	}
}

// Waiting requests are served when the slot is free, the accounts in turn. A client that disconnects leaves the queue and isn't counted.
// Beyond the limit of waiting requests the reply comes at once, and the connection is closed.
func TestWaitingRequestsTakeTurns(t *testing.T) {
	w := newWorld(t, nil)
	mine, theirs := w.response(w.campaign(plainCampaign)), w.response(w.campaign(plainCampaign, as(w.other.key)), as(w.other.key))
	w.limit(100, nil)
	w.bare.SetLimits(func(l *httpx.Limits) { l.Requests, l.Wait, l.Waiting = 1, patience, 6 })
	var group sync.WaitGroup
	ask := func(waiting int, path, key string, status int, edits ...func(*http.Request)) {
		group.Go(func() {
			if a := w.do("GET", path, "", append(edits, as(key))...); a.status != status {
				a.errorf("%d, want %d", a.status, status)
			}
		})
		w.waiting(waiting)
	}
	w.during(mine, func() {
		ctx, leave := context.WithCancel(t.Context())
		ask(1, mine, w.mine.key, 499, func(r *http.Request) { *r = *r.WithContext(ctx) })
		leave()
		w.waiting(0)
		for i := range 3 {
			ask(i+1, mine, w.mine.key, 200)
		}
		w.do("GET", mine, "").is(503, "unavailable").wantHeader("Retry-After", "1").wantHeader("Connection", "close") // half of the queue is for others
		ask(4, theirs, w.other.key, 200)
		w.store.asked = nil
	})
	group.Wait()
	w.waiting(0)
	own, other := w.mine.account.ID, w.other.account.ID
	if want := []formsvc.ID{own, own, other, own, own}; !slices.Equal(w.store.asked, want) { // the first had the slot
		t.Errorf("served in the order %v, want %v", w.store.asked, want)
	}
	w.do("GET", mine, "").is(200, "").wantHeader("X-Ratelimit-Remaining", "95") // five of mine were served
}

// Whatever requests do, no slot is lost or given twice.
func TestNoSlotIsLostOrGivenTwice(t *testing.T) {
	w := newWorld(t, nil)
	path := w.response(w.campaign(plainCampaign))
	w.oneSlot()
	inside := make(chan struct{}, 1)
	w.store.watch = func(context.Context) error {
		select {
		case inside <- struct{}{}:
			runtime.Gosched()
			<-inside
		default:
			t.Error("the slot was given twice")
		}
		return nil
	}
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for n := range 9 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 0 {
					go cancel()
				}
				w.send(w.request("GET", path, "").WithContext(ctx))
				cancel()
			}
		})
	}
	group.Wait()
	w.waiting(0)
	w.do("GET", path, "").is(200, "")
}

// The first request of a quota's window asks the store in a slot of look-ups.
func TestQuotaIsLookedUpInASlot(t *testing.T) {
	w := newWorld(t, nil)
	w.limit(100, nil)
	w.oneSlot()
	w.store.used.Store(new(func() { w.do("GET", "/v1/me", "", as(w.other.key)).is(503, "unavailable") }))
	if w.do("GET", "/v1/me", "").is(200, ""); w.store.used.Load() != nil {
		t.Error("the store wasn't asked")
	}
}

// Accounts that share an address share nothing else: the slots that one takes are its own as soon as its key is found valid, and while
// many keys are looked up, an account whose key was valid before needn't wait for them.
func TestAccountsAtOneAddress(t *testing.T) {
	login := func(r *http.Request) (*formsvc.Principal, error) {
		return &formsvc.Principal{AccountID: formsvc.ID(r.Header.Get("X-Account")), Permissions: formsvc.AllPermissions()}, nil
	}
	for _, tc := range []struct {
		name  string
		taken bool // a request of the first account works; otherwise its key is looked up
		login func(*http.Request) (*formsvc.Principal, error)
	}{{"new keys", true, nil}, {"a key looked up", false, nil}, {"the host's login", true, login}} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			path, theirs := w.response(w.campaign(plainCampaign)), w.other
			w.do("GET", path, "", asTenant(w.other)).is(404, "not_found")
			w.serve(&httpx.Options{Authenticate: tc.login})
			w.bare.SetLimits(func(l *httpx.Limits) { l.Requests, l.Wait = 2, time.Millisecond })
			hold := &w.store.ask
			if tc.taken {
				theirs.key, hold = w.key(w.other, formsvc.AllPermissions()...), &w.store.hold
			}
			w.mine.key = w.key(w.mine, formsvc.AllPermissions()...)
			inside, end, done := make(chan struct{}), make(chan struct{}), make(chan *answer, 1)
			hold.Store(new(func() { close(inside); <-end }))
			go func() { done <- w.do("GET", path, "", asTenant(w.mine)) }()
			<-inside
			w.do("GET", path, "", asTenant(theirs)).is(404, "not_found")
			w.do("GET", path, "", asTenant(w.mine)).is(503, "unavailable") // the other slot is for others
			close(end)
			(<-done).is(200, "")
		})
	}
}

// asTenant sends a request as a tenant, by its key and by the login of a host.
func asTenant(x tenant) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+x.key)
		r.Header.Set("X-Account", string(x.account.ID))
	}
}

// A client that sends its body or reads its reply slowly holds no slot meanwhile; neither does a file transfer.
func TestSlowClientsHoldNoSlot(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	one := w.response(strings.TrimSuffix(list, "/responses"))
	w.oneSlot()
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close) // after the connections are closed
	for _, x := range []struct{ name, path, more string }{
		{"body", list, "Content-Type: application/json\r\n"},
		{"upload", one + "/files", "Content-Type: text/plain\r\nContent-Disposition: attachment; filename=a\r\n"},
	} {
		conn := dial(t, server, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n"+
			"Expect: 100-continue\r\n\r\n", x.path, w.mine.key, x.more, len(plainResponse)))
		answers := bufio.NewReader(conn)
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // so the handler reads the body
			t.Fatalf("%s: %q, %v", x.name, line, err)
		}
		w.do("GET", one, "").is(200, "")
		_, _ = io.WriteString(conn, plainResponse)
		if _, err := answers.ReadString('\n'); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "201 Created") {
			t.Errorf("%s: %q, %v", x.name, line, err)
		}
	}
	w.blobs.opening = func() { w.do("GET", one, "").is(200, "") }
	ids, _ := w.page(one + "/files")
	w.do("GET", "/v1/files/"+ids[0], "").is(200, "")
}

// The bodies in memory have a common limit. Small ones are always accepted, and a request frees its memory when it
// ends.
func TestMaxBodies(t *testing.T) {
	w := newWorld(t, nil)
	w.limit(100, nil)
	list := w.campaign(plainCampaign) + "/responses"
	const limit = 64 << 10
	w.bare.SetLimits(func(l *httpx.Limits) { l.Body, l.Memory = limit, limit }) // which is twice the body
	long := strings.Replace(plainResponse, "{", "{"+strings.Repeat(" ", 60<<10), 1)
	slow := w.request("POST", list, long)
	slow.Body = io.NopCloser(io.MultiReader(strings.NewReader(long[:5_000]), &arriving{
		Reader: strings.NewReader(long[5_000:]), first: func() { w.do("POST", list, long).is(201, "") },
	}))
	w.send(slow).is(201, "") // a body takes no memory before it arrives
	during := 0
	other := &arriving{Reader: strings.NewReader(long[len(long)-10:]), first: func() { // when most of the body has arrived
		during++
		w.do("POST", list, long).is(503, "unavailable").wantHeader("Connection", "close").wantHeader("Retry-After", "1")
		w.do("POST", list, long, func(r *http.Request) { r.ContentLength = -1 }).is(503, "unavailable")
		w.do("POST", list, plainResponse).is(201, "")
	}}
	for range 3 { // the first of which is watched
		other.Reader = strings.NewReader(long[len(long)-10:])
		r := w.request("POST", list, long)
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(long[:len(long)-10]), other))
		w.send(r).is(201, "")
	}
	equal(t, during, 1, "%d bodies were watched")
	if left := w.do("GET", list, "").is(200, "").number("X-Ratelimit-Remaining"); left != 92 {
		t.Errorf("%d requests left", left) // of 100: the campaign, six responses, the list
	}
}

// Replies that their clients don't read hold no slot. They have a common limit of memory, of which an account gets half. A reply about a
// change that is made is never refused.
func TestUnreadRepliesShareMemory(t *testing.T) {
	w := newWorld(t, nil)
	const size = 100 << 10
	large := answers(`{"a":{"value":["` + strings.Repeat("x", size) + `"]}}`)
	campaign, others := w.campaign(plainCampaign), w.campaign(plainCampaign, as(w.other.key))
	path := campaign + "/responses/" + w.do("POST", campaign+"/responses", large, header("Idempotency-Key", "k")).is(201, "").text("uuid")
	their := others + "/responses/" + w.do("POST", others+"/responses", large, as(w.other.key)).is(201, "").text("uuid")
	w.limit(100, nil)
	w.oneSlot()
	w.bare.SetLimits(func(l *httpx.Limits) { l.Body, l.Memory = 2*size, 6*size })
	unread := 0
	var read func()
	read = func() {
		if unread++; unread < 5 { // each of them is read after the next one
			w.api.ServeHTTP(&watched{httptest.NewRecorder(), read}, w.request("GET", path, ""))
			return
		}
		for _, target := range []string{path, campaign + "/responses"} {
			w.do("GET", target, "").is(503, "unavailable").wantHeader("Retry-After", "1").wantHeader("Etag", "")
		}
		w.do("POST", campaign+"/responses", large, header("Idempotency-Key", "k")).is(503, "unavailable")
		w.do("GET", their, "", as(w.other.key)).is(200, "")
		w.do("POST", others+"/responses", large, as(w.other.key)).is(201, "")
	}
	read()
	for _, target := range []string{path, campaign + "/responses"} {
		w.do("GET", target, "").is(200, "")
	}
	w.do("POST", campaign+"/responses", large, header("Idempotency-Key", "k")).is(201, "").wantHeader("X-Ratelimit-Remaining", "93")
}

// An account that has as many campaigns or responses as it may gets 409, and an earlier call with the same key its own reply.
func TestCampaignLimit(t *testing.T) {
	w := newWorld(t, nil)
	w.use(w.store, nil, func(o *formsvc.Options) { o.MaxCampaigns, o.MaxResponses = 1, 1 })
	list := w.do("POST", "/v1/campaigns", plainCampaign, once("k")).is(201, "").header.Get("Location") + "/responses"
	w.do("POST", list, plainResponse, once("r")).is(201, "")
	w.do("POST", list, plainResponse).is(409, "response_limit")
	w.do("POST", list, plainResponse, once("r")).is(201, "").wantHeader("Idempotent-Replayed", "true")
	if a := w.do("POST", "/v1/campaigns", plainCampaign).is(409, "campaign_limit"); !strings.Contains(a.problem().Detail, "1 campaigns") {
		a.errorf("doesn't name the limit: %s", a.body)
	}
	w.do("POST", "/v1/campaigns", plainCampaign, once("k")).is(201, "").wantHeader("Idempotent-Replayed", "true")
}

// The files of an account have at most as many bytes as they may. Deleting a response makes room.
func TestStorageLimit(t *testing.T) {
	w := newWorld(t, nil)
	w.use(w.store, nil, func(o *formsvc.Options) { o.MaxStored = 10 })
	one := w.response(w.campaign(plainCampaign))
	send := func() *answer {
		return w.do("POST", one+"/files", "123456", header("Content-Disposition", "attachment; filename=a"))
	}
	send().is(201, "")
	if a := send().is(409, "storage_limit"); !strings.Contains(a.problem().Detail, "10 bytes") {
		a.errorf("the limit isn't named")
	}
	w.do("DELETE", one, "").is(204, "")
	one = w.response(w.campaign(plainCampaign))
	send().is(201, "")
}

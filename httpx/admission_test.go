package httpx_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// A crowd is a server with one slot for requests, which is taken until free is called.
type crowd struct {
	*world
	server *httptest.Server
	list   string // of responses
	one    string // a response
	free   func()
}

// newCrowd returns a crowd whose requests wait for up to the given time.
func newCrowd(t *testing.T, w *world, opts *httpx.Options) *crowd {
	t.Helper()
	c := &crowd{world: w, list: w.campaign(plainCampaign) + "/responses"}
	c.one = w.response(strings.TrimSuffix(c.list, "/responses"))
	opts.MaxRequests = 1
	c.serve(opts)
	c.server = httptest.NewServer(c.api)
	t.Cleanup(c.server.Close)
	inside, end, done := make(chan struct{}), make(chan struct{}), make(chan *answer, 1)
	release := sync.OnceFunc(func() { close(end) })
	t.Cleanup(release) // before the server is closed, also when the test fails
	c.store.hold.Store(new(func() {
		close(inside)
		<-end
	}))
	go func() { done <- c.call(t.Context(), "GET", c.list+"/"+noID, "") }()
	select {
	case <-inside:
	case <-time.After(patience):
		t.Fatal("nobody took the place")
	}
	c.free = func() {
		release()
		(<-done).is(404, "not_found")
	}
	return c
}

// noID is an identifier without a record.
const noID = "01910000-0000-7000-8000-000000000000"

// call sends a request over TCP and returns the reply; status 0 means none.
func (c *crowd) call(ctx context.Context, method, path, body string, edits ...func(*http.Request)) *answer {
	a := &answer{tb: c.tb, what: method + " " + path}
	r, err := http.NewRequestWithContext(ctx, method, c.server.URL+path, strings.NewReader(body))
	if err != nil {
		c.tb.Error(err)
		return a
	}
	r.Header.Set("Authorization", "Bearer "+c.mine.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(r)
	}
	response, err := c.server.Client().Do(r)
	if err != nil {
		return a
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a
	}
	a.status, a.header, a.body = response.StatusCode, response.Header, string(text)
	if response.Close {
		a.header.Set("Connection", "close") // the client removes it
	}
	return a
}

// waiting waits until n requests wait for the slot.
func (c *crowd) waiting(n int) {
	c.tb.Helper()
	for end := time.Now().Add(patience); c.bare.Waiting() != n; runtime.Gosched() {
		if time.Now().After(end) {
			c.tb.Fatalf("%d requests wait, want %d", c.bare.Waiting(), n)
		}
	}
}

// A request that waited without success gets Retry-After and keeps its connection. It uses up no quota, no idempotency key and
// no failed authentication. Public routes reply meanwhile.
func TestOverloadReturnsRetryAfter(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.limit(100, nil)
		c := newCrowd(t, w, &httpx.Options{MaxWait: 10 * time.Millisecond})
		w.log.Reset()
		key := header("Idempotency-Key", "k")
		for range 3 {
			for _, a := range []*answer{
				c.call(t.Context(), "POST", c.list, plainResponse, key), c.call(t.Context(), "GET", c.one, ""),
				c.call(t.Context(), "GET", c.one, "", as("nonsense")),
			} {
				a.is(503, "unavailable").check("GET")
				if a.header.Get("Retry-After") == "" || a.header.Get("X-Ratelimit-Remaining") != "" || a.header.Get("Connection") != "" {
					a.errorf("header %v", a.header)
				}
			}
		}
		for _, path := range []string{"/", "/healthz", "/readyz", "/openapi.json", "/docs"} {
			c.call(t.Context(), "GET", path, "").is(200, "")
		}
		if n := strings.Count(w.log.String(), "\n"); n != 1 || !strings.Contains(w.log.String(), "level=WARN") {
			t.Errorf("logged %d lines: %s", n, w.log)
		}
		c.free()
		a := c.call(t.Context(), "POST", c.list, plainResponse, key).is(201, "")
		// The campaign and a response were created, then the slot was taken, then this request came.
		if left := a.number("X-Ratelimit-Remaining"); left != 96 || a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%d requests left, header %v", left, a.header)
		}
		if n := w.total(c.list); n != 2 {
			t.Errorf("%d responses", n)
		}
	})
}

// A waiting request is served when the slot is free, with or without a body.
func TestWaitingRequestsAreServed(t *testing.T) {
	c := newCrowd(t, newWorld(t, openMemory(t), nil), &httpx.Options{MaxWait: patience})
	const n = 5
	answers := make(chan *answer, n)
	for i := range n {
		go func() { answers <- c.call(t.Context(), "GET", c.one, "") }()
		c.waiting(i + 1)
	}
	ended := make(chan *answer, 1)
	go func() { ended <- c.call(t.Context(), "POST", c.list, plainResponse) }()
	c.waiting(n + 1)
	c.free()
	for range n {
		(<-answers).is(200, "")
	}
	(<-ended).is(201, "")
	c.waiting(0)
}

// Beyond the limit of waiting requests the reply comes at once, and the connection is closed.
func TestMaxWaiting(t *testing.T) {
	c := newCrowd(t, newWorld(t, openMemory(t), nil), &httpx.Options{MaxWait: patience, MaxWaiting: 1})
	first := make(chan *answer, 1)
	go func() { first <- c.call(t.Context(), "GET", c.one, "") }()
	c.waiting(1)
	a := c.call(t.Context(), "GET", c.one, "").is(503, "unavailable")
	if a.header.Get("Retry-After") == "" || a.header.Get("Connection") != "close" {
		t.Errorf("header %v", a.header)
	}
	c.free()
	(<-first).is(200, "")
}

// Accounts that share an address share nothing else: the slots that one takes are its own as soon as its key is found valid, and while
// many keys are looked up, an account whose key was valid before needn't wait for them.
func TestAccountsAtOneAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		taken, fresh bool // a request of the first account works, or its key is looked up; the other key is new too
		opts         httpx.Options
	}{
		"new keys":             {taken: true, fresh: true},
		"keys unused for long": {taken: true},
		"a key looked up":      {},
		"the host's login": {taken: true, opts: httpx.Options{Authenticate: func(r *http.Request) (*formsvc.Principal, error) {
			return &formsvc.Principal{AccountID: formsvc.ID(r.Header.Get("X-Account")), Permissions: formsvc.AllPermissions()}, nil
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, openMemory(t), nil)
			path, theirs := w.response(w.campaign(plainCampaign)), w.other
			w.do("GET", path, "", asTenant(w.other)).is(404, "not_found")
			w.now = w.now.Add(time.Hour)
			tc.opts.MaxRequests, tc.opts.MaxWait = 2, time.Millisecond
			w.serve(&tc.opts)
			if tc.fresh {
				theirs.key = w.key(w.other, formsvc.AllPermissions()...)
			}
			w.mine.key = w.key(w.mine, formsvc.AllPermissions()...)
			inside, end, done := make(chan struct{}), make(chan struct{}), make(chan *answer, 1)
			hold := &w.store.ask
			if tc.taken {
				hold = &w.store.hold
			}
			hold.Store(new(func() { close(inside); <-end }))
			go func() { done <- w.do("GET", path, "", asTenant(w.mine)) }()
			<-inside
			w.do("GET", path, "", asTenant(theirs)).is(404, "not_found")
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

// A client that disconnects while it waits leaves the queue, and its request has no effect.
func TestDisconnectedClientLeavesTheQueue(t *testing.T) {
	c := newCrowd(t, newWorld(t, openMemory(t), nil), &httpx.Options{MaxWait: patience, MaxWaiting: 1})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan *answer, 1)
	go func() { gone <- c.call(ctx, "GET", c.one, "") }()
	c.waiting(1)
	leave()
	if a := <-gone; a.status != 0 {
		t.Errorf("answered %d", a.status)
	}
	c.waiting(0)
	next := make(chan *answer, 1)
	go func() { next <- c.call(t.Context(), "GET", c.one, "") }()
	c.waiting(1)
	c.free()
	(<-next).is(200, "")
}

// A panic frees the slot, whatever was sent before.
func TestPanicFreesTheSlot(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		path := w.response(w.campaign(plainCampaign))
		w.serve(&httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
		for _, v := range []any{"a panic", http.ErrAbortHandler} {
			w.store.panic = v
			func() {
				defer func() { _ = recover() }()
				w.do("GET", path, "").is(500, "internal")
			}()
			w.store.panic = nil
			w.do("GET", path, "").is(200, "")
		}
	})
}

// A client that sends its body or reads its reply slowly holds no slot meanwhile; neither does a file transfer.
func TestSlowClientsHoldNoSlot(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	list := w.campaign(plainCampaign) + "/responses"
	uploads := w.response(strings.TrimSuffix(list, "/responses")) + "/files"
	w.serve(&httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close) // after the connections are closed
	for _, x := range []struct{ name, path, more string }{
		{"body", list, "Content-Type: application/json\r\n"},
		{"upload", uploads, "Content-Type: text/plain\r\nContent-Disposition: attachment; filename=a\r\n"},
	} {
		conn := slowly(t, server, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n"+
			"Expect: 100-continue\r\n\r\n", x.path, w.mine.key, x.more, len(plainResponse)))
		answers := bufio.NewReader(conn)
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // so the handler reads the body
			t.Fatalf("%s: %q, %v", x.name, line, err)
		}
		w.do("GET", list, "").is(200, "")
		_, _ = io.WriteString(conn, plainResponse)
		if _, err := answers.ReadString('\n'); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "201 Created") {
			t.Errorf("%s: %q, %v", x.name, line, err)
		}
	}
}

// slowly begins a request.
func slowly(t *testing.T, server *httptest.Server, head string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A reply that the client reads slowly holds no slot.
func TestSlowReadersHoldNoSlot(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	path := w.response(w.campaign(plainCampaign))
	w.serve(&httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
	during := 0
	for _, target := range []string{path, strings.TrimSuffix(path, path[len(path)-37:])} {
		w.api.ServeHTTP(&watched{httptest.NewRecorder(), func() {
			during++
			w.do("GET", path, "").is(200, "")
		}}, w.request("GET", target, ""))
	}
	if during != 2 {
		t.Errorf("%d answers were written", during)
	}
}

// A watched reply calls a function while it is written.
type watched struct {
	*httptest.ResponseRecorder
	do func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.do()
	return w.ResponseRecorder.Write(p)
}

// A request that waited for its own body and then finds no slot isn't counted.
func TestNoSlotAfterTheBodyCostsNoQuota(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.limit(100, nil)
	list := w.campaign(plainCampaign) + "/responses"
	w.serve(&httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
	end, done := make(chan struct{}), make(chan struct{})
	body := &arriving{Reader: strings.NewReader(plainResponse), first: func() { // then another request takes the slot
		inside := make(chan struct{})
		w.store.hold.Store(new(func() {
			close(inside)
			<-end
		}))
		go func() {
			defer close(done)
			w.do("GET", list+"/"+noID, "").is(404, "")
		}()
		<-inside
	}}
	r := w.request("POST", list, plainResponse)
	r.Body = io.NopCloser(body)
	w.send(r).is(503, "unavailable")
	close(end)
	<-done
	if left := w.do("GET", list, "").is(200, "").number("X-Ratelimit-Remaining"); left != 97 {
		t.Errorf("%d requests left", left) // of 100: the campaign, the other one, the list
	}
}

// An arriving body calls first before its first byte.
type arriving struct {
	io.Reader
	first func()
}

func (a *arriving) Read(p []byte) (int, error) {
	if a.first != nil {
		a.first()
		a.first = nil
	}
	return a.Reader.Read(p)
}

// The bodies in memory have a common limit. Small ones are always accepted, and a request frees its memory when it
// ends.
func TestMaxBodies(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.limit(100, nil)
	list := w.campaign(plainCampaign) + "/responses"
	const limit = 64 << 10
	w.serve(&httpx.Options{MaxBody: limit, MaxBodies: limit}) // twice MaxBody
	long := strings.Replace(plainResponse, "{", "{"+strings.Repeat(" ", 60<<10), 1)
	during := 0
	other := &arriving{Reader: strings.NewReader(long[len(long)-10:]), first: func() { // when most of the body has arrived
		during++
		a := w.do("POST", list, long).is(503, "unavailable")
		if a.header.Get("Connection") != "close" || a.header.Get("Retry-After") == "" {
			t.Errorf("header %v", a.header)
		}
		w.do("POST", list, long, func(r *http.Request) { r.ContentLength = -1 }).is(503, "unavailable")
		w.do("POST", list, plainResponse).is(201, "")
	}}
	for range 3 { // the first of which is watched
		other.Reader = strings.NewReader(long[len(long)-10:])
		r := w.request("POST", list, long)
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(long[:len(long)-10]), other))
		w.send(r).is(201, "")
	}
	if during != 1 {
		t.Errorf("%d bodies were watched", during)
	}
	if left := w.do("GET", list, "").is(200, "").number("X-Ratelimit-Remaining"); left != 94 {
		t.Errorf("%d requests left", left) // of 100: the campaign, four responses, the list
	}
}

// Replies that their clients don't read have a common limit, too, of which an account gets half. A reply about a change that is made is never refused.
func TestUnreadRepliesShareMemory(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	const size = 100 << 10
	large := answers(`{"a":{"value":["` + strings.Repeat("x", size) + `"]}}`)
	campaign, others := w.campaign(plainCampaign), w.campaign(plainCampaign, as(w.other.key))
	path := campaign + "/responses/" + w.do("POST", campaign+"/responses", large, header("Idempotency-Key", "k")).is(201, "").text("uuid")
	their := others + "/responses/" + w.do("POST", others+"/responses", large, as(w.other.key)).is(201, "").text("uuid")
	w.serve(&httpx.Options{MaxBody: 2 * size, MaxBodies: 6 * size})
	unread := 0
	var read func()
	read = func() {
		if unread++; unread < 5 { // each of them is read after the next one
			w.api.ServeHTTP(&watched{httptest.NewRecorder(), read}, w.request("GET", path, ""))
			return
		}
		for _, target := range []string{path, campaign + "/responses"} {
			a := w.do("GET", target, "").is(503, "unavailable")
			if a.header.Get("Retry-After") == "" || a.header.Get("Etag") != "" {
				t.Errorf("header %v", a.header)
			}
		}
		w.do("POST", campaign+"/responses", large, header("Idempotency-Key", "k")).is(503, "unavailable")
		w.do("GET", their, "", as(w.other.key)).is(200, "")
		w.do("POST", others+"/responses", large, as(w.other.key)).is(201, "")
	}
	read()
	for _, target := range []string{path, campaign + "/responses"} {
		w.do("GET", target, "").is(200, "")
	}
	w.do("POST", campaign+"/responses", large, header("Idempotency-Key", "k")).is(201, "")
}

// A key gets 1,000 stored replies at once and then 200 a second, since they don't count for its quota.
func TestReplaysHaveALimit(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	list := w.campaign(plainCampaign) + "/responses"
	now := time.Now()
	w.bare.SetNow(func() time.Time { return now })
	send := func() *answer { return w.do("POST", list, plainResponse, header("Idempotency-Key", "k")) }
	send().is(201, "")
	for _, more := range []int{1000, 200} {
		for range more {
			send().is(201, "")
		}
		send().is(429, "rate_limited").wantHeader("Retry-After", "1")
		now = now.Add(time.Second)
	}
	w.do("POST", list, plainResponse).is(201, "")
}

// An account that has as many campaigns as it may gets 409, and an earlier call with the same key its own reply.
func TestCampaignLimit(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		key := header("Idempotency-Key", "k")
		svc, err := formsvc.New(w.store, &formsvc.Options{MaxCampaigns: new(2), Now: w.clock})
		if err != nil {
			t.Fatal(err)
		}
		w.svc = svc
		w.serve(nil)
		w.do("POST", "/v1/campaigns", plainCampaign).is(201, "")
		w.do("POST", "/v1/campaigns", plainCampaign, key).is(201, "")
		if a := w.do("POST", "/v1/campaigns", plainCampaign).is(409, "campaign_limit"); !strings.Contains(a.problem().Detail, "2 campaigns") {
			a.errorf("doesn't name the limit: %s", a.body)
		}
		w.do("POST", "/v1/campaigns", plainCampaign, key).is(201, "").wantHeader("Idempotent-Replayed", "true")
		w.do("POST", "/v1/campaigns", plainCampaign, as(w.other.key)).is(201, "")
		if n := w.total("/v1/campaigns"); n != 2 {
			t.Errorf("%d campaigns", n)
		}
	})
}

package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func once(key string) func(*http.Request) { return header("Idempotency-Key", key) }

// fresh checks that the reply isn't a replay.
func (a *answer) fresh() *answer {
	a.tb.Helper()
	if got := a.header.Get("Idempotent-Replayed"); got != "" {
		a.errorf("Idempotent-Replayed: %s", got)
	}
	return a
}

// repeats checks that the reply is a replay of another one; the first one may have shown a secret.
func (a *answer) repeats(first *answer) *answer {
	a.tb.Helper()
	body, _, secret := strings.Cut(first.body, `,"secret":"`)
	if secret {
		body += "}"
	}
	if a.status != first.status || a.body != body {
		a.errorf("%d %s, want %d %s", a.status, a.body, first.status, body)
	}
	for _, name := range []string{"Location", "Etag", "Content-Type", "Cache-Control", "Retry-After"} {
		if got, want := a.header.Get(name), first.header.Get(name); got != want {
			a.errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a.header.Get("Idempotent-Replayed") != "true" || a.header.Get("X-Request-Id") == first.header.Get("X-Request-Id") {
		a.errorf("no replay, or not with its own request ID: %v", a.header)
	}
	return a
}

// Every POST happens once, and its key is refused for any other request.
func TestEveryPostHappensOnce(t *testing.T) {
	w := newWorld(t, nil)
	for _, s := range w.requests(w.pair()) {
		if s.Method != http.MethodPost {
			continue
		}
		key := once("the-key-of-" + s.Name)
		first := w.do("POST", s.path, s.body, key).is(s.status, "").fresh()
		w.now = w.now.Add(time.Minute)
		w.do("POST", s.path, s.body, key).repeats(first)
		edit := func(r *http.Request) {}
		if s.Name == "uploadFile" {
			edit = named("attachment; filename=b.json")
		}
		w.do("POST", s.path, s.body+" ", key, edit).is(422, "idempotency_mismatch").fresh()
		w.do("POST", s.path, s.body, key).repeats(first)
		w.do("POST", s.path, s.body, once("another-key-of-"+s.Name)).is(s.status, "").fresh()
	}
}

// nodes returns n handlers, each with its own service, over the same store.
func (w *world) nodes(n int) []http.Handler {
	w.tb.Helper()
	nodes := []http.Handler{w.api}
	for len(nodes) < n {
		w.use(w.store, nil, nil)
		nodes = append(nodes, w.api)
	}
	w.api = nodes[0]
	return nodes
}

// E1: a hundred concurrent requests with one key change something once, on one node and on two.
func TestConcurrentRetriesHappenOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		campaign, response := w.pair()
		for n := range 2 {
			nodes := w.nodes(n + 1)
			for list, body := range map[string]string{
				"/v1/campaigns":         plainCampaign,
				campaign + "/responses": plainResponse,
				response + "/files":     `"a file"`,
				"/v1/webhooks":          hookBody(fmt.Sprint("of", n)),
			} {
				before := w.total(list)
				w.hundred(nodes, list, body, once(fmt.Sprint(n, list)))
				equal(t, w.total(list)-before, 1, "%s on %d nodes: %d records", list, n+1)
			}
		}
		if n, blobs := w.total(response+"/files"), w.blobCount(); n != blobs {
			t.Errorf("%d files, %d blobs", n, blobs)
		}
	})
}

// hundred sends a request a hundred times: one succeeds, and the others get its replay or a conflict.
func (w *world) hundred(nodes []http.Handler, target, body string, key func(*http.Request)) {
	w.tb.Helper()
	var all sync.WaitGroup
	answers, begin := make([]*httptest.ResponseRecorder, 100), make(chan struct{})
	for i := range answers {
		r := w.request("POST", target, body, key)
		answers[i] = httptest.NewRecorder()
		all.Go(func() {
			<-begin
			nodes[i%len(nodes)].ServeHTTP(answers[i], r)
		})
	}
	close(begin)
	all.Wait()
	fresh, locations := 0, map[string]bool{}
	for _, a := range answers {
		switch {
		case a.Code == 201:
			locations[a.Header().Get("Location")] = true
			if a.Header().Get("Idempotent-Replayed") == "" {
				fresh++
			}
		case a.Code != 409 || !strings.Contains(a.Body.String(), `"idempotency_in_flight"`) || a.Header().Get("Retry-After") != "1":
			w.tb.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	if fresh != 1 || len(locations) != 1 {
		w.tb.Errorf("%s: done %d times, answers with %v", target, fresh, locations)
	}
}

// E2: a key belongs to one account and one request.
func TestKeyBelongsToOneRequest(t *testing.T) {
	w := newWorld(t, nil)
	campaign, other := w.campaign(plainCampaign), w.campaign(plainCampaign)
	first := w.do("POST", campaign+"/responses", plainResponse, once("k")).is(201, "")
	w.do("POST", other+"/responses", plainResponse, once("k")).is(422, "idempotency_mismatch")
	w.do("POST", "/v1/campaigns", `{`, once("k")).is(422, "idempotency_mismatch")
	w.do("POST", campaign+"/responses", plainResponse, once("K")).is(201, "").fresh()
	theirs := w.do("POST", "/v1/campaigns", plainCampaign, once("k"), as(w.other.key)).is(201, "").fresh()
	w.do("POST", "/v1/campaigns", plainCampaign, once("k"), as(w.other.key)).repeats(theirs)
	w.do("POST", campaign+"/responses", plainResponse, once("k")).repeats(first)
}

// E3: an invalid key is refused before anything happens; other methods ignore it.
func TestInvalidIdempotencyKeys(t *testing.T) {
	w := newWorld(t, nil)
	for _, values := range [][]string{{""}, {strings.Repeat("k", 256)}, {"k k"}, {"schlüssel"}, {"k\x7f"}, {"k", "k"}} {
		w.do("POST", "/v1/campaigns", plainCampaign, header("Idempotency-Key", values...)).is(400, "invalid_idempotency_key")
		w.do("GET", "/v1/campaigns", "", header("Idempotency-Key", values...)).is(200, "").fresh().has("0", "total")
	}
	for _, key := range []string{"k", strings.Repeat("~", 255), `"quoted"`, "quoted", "a,b"} {
		first := w.do("POST", "/v1/campaigns", plainCampaign, once(key)).is(201, "").fresh()
		w.do("POST", "/v1/campaigns", plainCampaign, once(key)).repeats(first)
	}
	path := w.campaign(plainCampaign)
	for _, title := range []string{"one", "two"} {
		w.do("PUT", path, `{"title":"`+title+`"}`, once("k")).is(200, "").fresh().has(`"`+title+`"`, "title")
	}
}

// E4: a failed call can be retried, and leaves no claim behind.
func TestFailuresAreNotReplayed(t *testing.T) {
	w := newWorld(t, nil)
	list, key := w.campaign(plainCampaign)+"/responses", once("k")
	for _, err := range []error{formsvc.ErrUnavailable, formsvc.ErrNoSpace, formsvc.ErrUnknownOutcome, errors.New("any")} {
		w.store.err = err
		if a := w.do("POST", list, plainResponse, key).fresh(); a.status < 500 {
			t.Errorf("%v: %d", err, a.status)
		}
	}
	w.store.err, w.store.panic = nil, "at the disco"
	w.do("POST", list, plainResponse, key).is(500, "internal").fresh()
	w.store.panic = nil
	gone, leave := context.WithCancel(t.Context())
	leave()
	w.do("POST", list, `{}`, key, func(r *http.Request) { *r = *r.WithContext(gone) })
	first := w.do("POST", list, plainResponse, key).is(201, "").fresh()
	w.store.err = formsvc.ErrUnavailable
	w.do("POST", list, plainResponse, key).is(503, "unavailable").fresh()
	w.store.err = nil
	w.do("POST", list, plainResponse, key).repeats(first)
	equal(t, w.total(list), 1, "%d responses")
}

// E5: a key expires after 24 hours, even if its row still exists.
func TestIdempotencyKeysExpireAfter24Hours(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	uploads := w.response(strings.TrimSuffix(list, "/responses")) + "/files"
	for range 2 {
		first := w.do("POST", list, plainResponse, once("k")).is(201, "").fresh()
		upload := w.do("POST", uploads, "content", once("file")).is(201, "").fresh()
		refusal := w.do("POST", list, `{}`, once("refused")).is(422, "").fresh()
		w.now = w.now.Add(formsvc.IdempotencyTTL)
		w.do("POST", list, plainResponse, once("k")).repeats(first)
		w.do("POST", uploads, "content", once("file")).repeats(upload)
		w.do("POST", list, `{}`, once("refused")).repeats(refusal)
		w.now = w.now.Add(time.Millisecond)
	}
}

// A replay returns the first reply, even if the record has changed or the request would be refused by now.
func TestReplayReturnsTheFirstReply(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	first := w.do("POST", campaign+"/responses", plainResponse, once("k")).is(201, "")
	w.do("PATCH", campaign+"/responses/"+first.text("uuid"), `{"status":"validated"}`).is(200, "")
	w.do("PUT", campaign, `{"title":"Closed","status":"closed"}`).is(200, "")
	w.do("POST", campaign+"/responses", plainResponse, once("k")).repeats(first)

	hook := w.webhook(hookBody("in"))
	again := w.do("POST", hook+"/test", "", once("test")).is(201, "").header.Get("Location") + "/redeliver"
	redelivered := w.do("POST", again, "", once("again")).is(200, "")
	w.claim()
	w.do("POST", again, "").is(409, "delivery_in_progress")
	w.do("POST", again, "", once("again")).repeats(redelivered)
	w.do("DELETE", hook, "").is(204, "")
	w.do("POST", again, "", once("again")).repeats(redelivered)
}

// What a host refuses is asked again by a retry, unless the refusal is to last. A change is refused as well.
func TestHostRefuses(t *testing.T) {
	w := newWorld(t, nil)
	refusal := &formsvc.Refusal{Code: "plan_exhausted", Detail: "The plan is used up."}
	var rule error
	w.use(w.store, nil, func(o *formsvc.Options) {
		o.CheckResponse = func(context.Context, *formsvc.Campaign, *formsvc.Response, *formsvc.Response) error { return rule }
	})
	w.api = w.bare // the document doesn't have a host's codes
	path := w.campaign(plainCampaign) + "/responses"
	one := path + "/" + w.do("POST", path, plainResponse).is(201, "").text("uuid")
	rule = refusal
	w.do("POST", path, plainResponse, once("a")).is(409, "plan_exhausted").fresh().has(`"The plan is used up."`, "detail")
	w.do("PATCH", one, `{"status":"validated"}`).is(409, "plan_exhausted")
	refusal.Lasting = true
	first := w.do("POST", path, plainResponse, once("b")).is(409, "plan_exhausted")
	rule = nil
	w.do("POST", path, plainResponse, once("a")).is(201, "").fresh()
	w.do("POST", path, plainResponse, once("b")).repeats(first)
	rule = &formsvc.ValidationError{Fields: []formsvc.FieldError{{Pointer: "/user/email", Code: "unknown_member", Detail: "must be a member's"}}}
	w.do("POST", path, plainResponse).is(422, "validation_failed").faults("/user/email unknown_member")
	rule = errors.New("the rule's own fault")
	w.do("POST", path, plainResponse).is(500, "internal")
}

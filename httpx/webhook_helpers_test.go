package httpx_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// hookBody returns the body of a webhook at example.com, with further fields as JSON.
func hookBody(path string, members ...string) string {
	return hookTo("https://example.com/"+path, members...)
}

func hookTo(url string, members ...string) string {
	return `{` + strings.Join(append(members, `"url":"`+url+`","events":["response.created"]`), ",") + `}`
}

// webhook creates a webhook and returns its path.
func (w *world) webhook(body string, edits ...func(*http.Request)) string {
	w.tb.Helper()
	return "/v1/webhooks/" + w.do("POST", "/v1/webhooks", body, edits...).is(201, "").text("uuid")
}

// kept returns the stored webhook at the path, with its secrets.
func (w *world) kept(path string) formsvc.Webhook {
	w.tb.Helper()
	hook, err := w.svc.Webhooks.Get(w.tb.Context(), formsvc.WebhookKey{
		AccountID: w.mine.account.ID, ID: formsvc.ID(strings.TrimPrefix(path, "/v1/webhooks/")),
	})
	if err != nil {
		w.tb.Fatal(err)
	}
	return hook
}

// atOnce sends the requests concurrently and counts the replies by status.
func (w *world) atOnce(requests []*http.Request) (statuses map[int]int, bodies []string) {
	statuses = map[int]int{}
	bodies = make([]string, len(requests))
	var mu sync.Mutex
	var group sync.WaitGroup
	for i, r := range requests {
		group.Go(func() {
			recorder := httptest.NewRecorder()
			w.api.ServeHTTP(recorder, r)
			mu.Lock()
			defer mu.Unlock()
			statuses[recorder.Code]++
			bodies[i] = recorder.Body.String()
		})
	}
	group.Wait()
	return statuses, bodies
}

// queue returns the world's deliveries as the engine sees them.
func (w *world) queue() delivery.Queue {
	w.tb.Helper()
	q, ok := w.store.Store.(delivery.Queue)
	if !ok {
		w.tb.Fatal("the store is no queue")
	}
	return q
}

// claim claims all due deliveries.
func (w *world) claim() []delivery.Claim {
	w.tb.Helper()
	endpoints, err := w.queue().Ready(w.tb.Context(), w.now)
	if err != nil {
		w.tb.Fatal(err)
	}
	req := delivery.ClaimRequest{Now: w.now, Lease: time.Minute}
	for _, e := range endpoints {
		req.Shares = append(req.Shares, delivery.Share{Endpoint: e.ID, N: 100})
	}
	if len(req.Shares) == 0 {
		return nil
	}
	claims, err := w.queue().Claim(w.tb.Context(), req)
	if err != nil {
		w.tb.Fatal(err)
	}
	return claims
}

// finish records the same result for all claims.
func (w *world) finish(claims []delivery.Claim, result delivery.Result, due time.Time, attempt delivery.Attempt) {
	w.tb.Helper()
	var outcomes []delivery.Outcome
	for _, c := range claims {
		attempt.Number, attempt.StartedAt = c.Attempts+1, w.now
		outcomes = append(outcomes, delivery.Outcome{
			ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: result, Due: due, Attempt: attempt,
		})
	}
	accepted, err := w.queue().Finish(w.tb.Context(), outcomes)
	if err != nil {
		w.tb.Fatal(err)
	}
	for i, ok := range accepted {
		if !ok {
			w.tb.Fatalf("%s: the outcome was not accepted", claims[i].ID)
		}
	}
}

// fail makes all due deliveries fail permanently.
func (w *world) fail() {
	w.tb.Helper()
	w.finish(w.claim(), delivery.Failed, time.Time{}, delivery.Attempt{
		Duration: 1500 * time.Microsecond, Status: 503, Error: delivery.ClassStatus, Answer: []byte("later"),
	})
}

// reads checks that the reply equals the record as it is read, apart from the secret.
func (a *answer) reads(w *world, path string) *answer {
	a.tb.Helper()
	want, got := a.object(), w.do("GET", path, "").is(200, "").object()
	delete(want, "secret")
	if !reflect.DeepEqual(want, got) {
		a.errorf("answered %v, reads %v", want, got)
	}
	return a
}

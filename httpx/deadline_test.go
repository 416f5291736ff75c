package httpx_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/httpx"
)

// A store that doesn't reply makes requests fail after Timeout, which doesn't count the time in which a body arrives. The time is that of
// the test's clock.
func TestRequestsHaveATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, slow = 5 * time.Second, 20 * time.Second
		w := newWorld(t, &httpx.Options{Timeout: limit})
		campaign := w.campaign(plainCampaign)
		response := w.do("POST", campaign+"/responses", answers(`{}`)).is(201, "").text("uuid")
		late := func(method, path, body string) *answer {
			r := w.request(method, path, "")
			r.Body = io.NopCloser(&arriving{strings.NewReader(body), func() { time.Sleep(slow) }})
			r.ContentLength = int64(len(body))
			return w.send(r)
		}
		// What a client sends late is no work.
		late("POST", campaign+"/responses", answers(`{}`)).is(201, "")
		late("POST", campaign+"/responses/"+response+"/files", strings.Repeat("x", 100)).is(201, "")
		w.store.watch = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		for _, c := range []struct {
			method, path, body string
			took               time.Duration
		}{
			{"GET", campaign + "/responses/" + response, "", limit},
			{"POST", campaign + "/responses", answers(`{}`), slow + limit},
			{"PATCH", campaign + "/responses/" + response, `{"status":"done"}`, slow + limit},
		} {
			began := time.Now()
			if c.body == "" {
				w.do(c.method, c.path, "").is(503, "timeout")
			} else {
				late(c.method, c.path, c.body).is(503, "timeout")
			}
			if took := time.Since(began); took != c.took {
				t.Errorf("%s %s took %v, want %v", c.method, c.path, took, c.took)
			}
		}
	})
}

// With a negative Timeout, requests take as long as the store does.
func TestNoTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &httpx.Options{Timeout: -1})
		w.store.watch = func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); limited {
				t.Error("the store's context has a deadline")
			}
			return nil
		}
		w.do("GET", w.response(w.campaign(plainCampaign)), "").is(200, "")
	})
}

package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"io"
	"testing/synctest"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// Every failure of a store, as clients see it.
func TestFailures(t *testing.T) {
	w := newWorld(t, nil)
	path := w.response(w.campaign(plainCampaign))
	w.api = w.bare // no store returns all these errors on a read, so the document lists them elsewhere
	for _, row := range []struct {
		err    error
		status int
		code   string
		logged bool
	}{
		{formsvc.ErrUnavailable, 503, "unavailable", true},
		{formsvc.ErrUnknownOutcome, 503, "outcome_unknown", true},
		{errors.Join(formsvc.ErrUnavailable, formsvc.ErrUnknownOutcome), 503, "outcome_unknown", true},
		{context.DeadlineExceeded, 503, "timeout", true},
		{context.Canceled, 500, "internal", true}, // not canceled by this client
		{formsvc.ErrConflict, 409, "conflict", false},
		{formsvc.ErrLimit, 409, "limit_reached", false},
		{&formsvc.LimitError{Kind: "responses", Limit: 7}, 409, "response_limit", false},
		{&formsvc.LimitError{Kind: "seats"}, 409, "limit_reached", false},
		{&formsvc.LimitError{Kind: "campaigns", Limit: 3}, 409, "campaign_limit", false},
		{&formsvc.LimitError{Kind: "bytes of files", Limit: 3}, 409, "storage_limit", false},
		{formsvc.ErrQuota, 429, "quota_exceeded", false},
		{formsvc.ErrInvalid, 422, "validation_failed", false},
		{formsvc.ErrStale, 412, "precondition_failed", false},
		{formsvc.ErrNotFound, 404, "not_found", false},
		{errors.New("password=hunter2 at 10.0.0.1"), 500, "internal", true},
	} {
		w.log.Reset()
		w.store.err = fmt.Errorf("the cause: %w", row.err)
		a := w.do("GET", path, "", header("X-Request-Id", "find-me")).is(row.status, row.code)
		if strings.Contains(a.body, "cause") || strings.Contains(a.body, "hunter2") {
			a.errorf("tells the cause: %s", a.body)
		}
		if got := a.header.Get("Retry-After"); (got != "") != (row.status == 503 || row.status == 429) {
			a.errorf("%d: Retry-After = %q", row.status, got)
		}
		log := w.log.String()
		if logged := log != ""; logged != row.logged {
			t.Errorf("%v: logged %q", row.err, log)
		}
		if row.logged && (!strings.Contains(log, "requestId=find-me") || !strings.Contains(log, "the cause") ||
			!strings.Contains(log, "route=/v1/campaigns/{uuid}/responses/{response_uuid}") || strings.Contains(log, path)) {
			t.Errorf("log: %s", log)
		}
	}
}

func TestClientGone(t *testing.T) {
	w := newWorld(t, nil)
	path := w.response(w.campaign(plainCampaign))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.log.Reset()
	w.store.err = ctx.Err()
	r := w.request("GET", path, "")
	w.send(r.WithContext(ctx)).is(499, "client_gone")
	if log := w.log.String(); !strings.Contains(log, "level=DEBUG") || !strings.Contains(log, "status=499") {
		t.Errorf("log: %s", log)
	}
}

// C13: a panic fails one request and frees its slot, and the server goes on.
func TestPanic(t *testing.T) {
	w := newWorld(t, nil)
	path := w.response(w.campaign(plainCampaign))
	w.oneSlot() // and frees its slot
	for _, v := range []any{"secret value", errors.New("secret value"), 3} {
		w.log.Reset()
		w.store.panic = v
		a := w.do("GET", path, "", header("X-Request-Id", "find-me")).is(500, "internal")
		if strings.Contains(a.body, "secret") {
			t.Errorf("tells the cause: %s", a.body)
		}
		if log := w.log.String(); !strings.Contains(log, "requestId=find-me") || !strings.Contains(log, "harness_test.go") {
			t.Errorf("log: %s", log)
		}
		w.store.panic = nil
		w.do("GET", path, "").is(200, "")
	}
	w.log.Reset()
	w.store.panic = http.ErrAbortHandler
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("recovered %v", err)
			}
		}()
		w.api.ServeHTTP(httptest.NewRecorder(), w.request("GET", path, ""))
	}()
	if w.log.Len() > 0 {
		t.Errorf("log: %s", w.log)
	}
	w.store.panic = nil
	w.do("GET", path, "").is(200, "")
}

// The log has no data of respondents or clients.
func TestLogHasNoClientData(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	w.do("POST", campaign+"/responses", plainResponse).is(201, "")
	w.do("POST", campaign+"/responses", "{").is(400, "")
	w.do("GET", campaign+"/responses?email=ada@example.com", "").is(200, "")
	if w.log.Len() > 0 {
		t.Errorf("log: %s", w.log)
	}
	w.store.err = errors.New("broken")
	w.do("POST", campaign+"/responses", plainResponse).is(500, "")
	w.store.panic = "broken"
	w.do("POST", campaign+"/responses", plainResponse).is(500, "")
	for _, secret := range []string{"ada@example.com", "Lovelace", "blue", w.mine.key, campaign} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("%q is in the log: %s", secret, w.log)
		}
	}
}

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

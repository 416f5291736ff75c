package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// Refusals that all operations share, tried on each.
func TestEveryOperationRefuses(t *testing.T) {
	withKey := func(r httpx.Route) bool { return !r.Public }
	writes := func(r httpx.Route) bool { return r.Method != http.MethodGet }
	sends := func(r httpx.Route) bool { return writes(r) && r.Method != http.MethodDelete }
	posts := func(r httpx.Route) bool { return r.Method == http.MethodPost }
	for _, row := range []struct {
		name string
		of   func(httpx.Route) bool
		test func(t *testing.T, w *world, s sample)
	}{
		{"beyond the rate", withKey, func(_ *testing.T, w *world, s sample) {
			w.serve(&httpx.Options{Rate: 0.001, Burst: 1})
			w.do("GET", "/v1/me", "").is(200, "")
			w.do(s.Method, s.path, s.body).is(429, "rate_limited")
		}},
		{"beyond the quota", withKey, func(_ *testing.T, w *world, s sample) {
			w.limit(1, nil)
			w.do("GET", "/v1/me", "")
			w.do(s.Method, s.path, s.body).is(429, "quota_exceeded")
		}},
		{"an invalid key", withKey, func(_ *testing.T, w *world, s sample) {
			w.serve(nil)
			w.do(s.Method, s.path, s.body, header("Authorization")).is(401, "unauthenticated")
			for range httpx.FailureBurst - 1 {
				w.do(s.Method, s.path, s.body, as("nonsense")).is(401, "unauthenticated")
			}
			w.do(s.Method, s.path, s.body, as("nonsense")).is(429, "too_many_failures")
		}},
		{"if the key can't be looked up", withKey, func(_ *testing.T, w *world, s sample) {
			for _, x := range []struct {
				err    error
				status int
				code   string
			}{
				{formsvc.ErrUnavailable, 503, "unavailable"},
				{fmt.Errorf("slow: %w", context.DeadlineExceeded), 503, "timeout"},
				{errors.New("secret cause"), 500, "internal"},
			} {
				w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) { return nil, x.err }})
				if a := w.do(s.Method, s.path, s.body).is(x.status, x.code); strings.Contains(a.body, "secret") {
					a.errorf("tells the cause: %s", a.body)
				}
			}
		}},
		{"a body that is too large", sends, func(_ *testing.T, w *world, s sample) {
			w.serve(&httpx.Options{MaxBody: 10})
			body, code := `{"something":"more than ten bytes"}`, "body_too_large"
			if s.Name == "uploadFile" {
				body, code = strings.Repeat("x", maxFile+1), "file_too_large"
			}
			w.do(s.Method, s.path, body).is(413, code)
			w.serve(nil)
		}},
		{"an incomplete body", sends, func(_ *testing.T, w *world, s sample) {
			w.do(s.Method, s.path, "", func(r *http.Request) {
				r.Body, r.ContentLength = cutOff(strings.NewReader("{")), -1
			}).is(400, "body_incomplete")
		}},
		{"a body that stalls", sends, func(_ *testing.T, w *world, s sample) {
			w.do(s.Method, s.path, "", func(r *http.Request) {
				r.Body, r.ContentLength = stalling(strings.NewReader(`{"`)), 100
			}).is(408, "body_timeout")
		}},
		{"a concurrent retry", posts, func(t *testing.T, w *world, s sample) {
			end, err := w.svc.Begin(w.mine.account.ID, "under-way")
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			w.do(s.Method, s.path, s.body, once("under-way")).is(409, "idempotency_in_flight")
		}},
		{"the key of another request", posts, func(_ *testing.T, w *world, s sample) {
			w.do("POST", "/v1/campaigns", `{"title":"The first"}`, once("used"))
			w.do(s.Method, s.path, s.body, once("used")).is(422, "idempotency_mismatch")
			w.do(s.Method, s.path, s.body, once("a b")).is(400, "invalid_idempotency_key")
		}},
		{"writing to a full store", writes, func(_ *testing.T, w *world, s sample) {
			w.store.err = formsvc.ErrNoSpace
			w.do(s.Method, s.path, s.body).is(507, "insufficient_storage")
			w.store.err = formsvc.ErrUnknownOutcome
			w.do(s.Method, s.path, s.body).is(503, "outcome_unknown")
			w.store.err = nil
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, nil)
			for _, s := range w.requests(w.pair()) {
				if row.of(s.Route) {
					row.test(t, w, s)
				}
			}
		})
	}
}

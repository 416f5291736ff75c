package httpx_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// Refusals that all operations share, tried on each.
func TestEveryOperationRefuses(t *testing.T) {
	withKey := func(r httpx.Route) bool { return !r.Public }
	sends := func(r httpx.Route) bool { return r.Method != http.MethodGet && r.Method != http.MethodDelete }
	posts := func(r httpx.Route) bool { return r.Method == http.MethodPost }
	for _, row := range []struct {
		name string
		of   func(httpx.Route) bool
		test func(t *testing.T, w *world, s sample)
	}{
		{"beyond the quota", withKey, func(_ *testing.T, w *world, s sample) {
			w.limit(1, nil)
			w.do("GET", "/v1/me", "")
			w.do(s.Method, s.path, s.body).is(429, "quota_exceeded")
		}},
		{"an invalid key", withKey, func(_ *testing.T, w *world, s sample) {
			w.serve(nil)
			w.do(s.Method, s.path, s.body, header("Authorization")).is(401, "unauthenticated")
		}},
		{"if the key can't be looked up", withKey, func(_ *testing.T, w *world, s sample) {
			w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) { return nil, errors.New("secret cause") }})
			if a := w.do(s.Method, s.path, s.body).is(500, "internal"); strings.Contains(a.body, "secret") {
				a.errorf("tells the cause: %s", a.body)
			}
		}},
		{"a body that is too large", sends, func(_ *testing.T, w *world, s sample) {
			w.bare.SetLimits(func(l *httpx.Limits) { l.Body = 10 })
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
		{"a concurrent retry", posts, func(_ *testing.T, w *world, s sample) {
			w.store.create = func() {
				w.do(s.Method, s.path, s.body, once("under-way")).is(409, "idempotency_in_flight").wantHeader("Retry-After", "1")
			}
			w.do("POST", "/v1/campaigns", `{"title":"The first"}`, once("under-way")).is(201, "")
		}},
		{"the key of another request", posts, func(_ *testing.T, w *world, s sample) {
			w.do("POST", "/v1/campaigns", `{"title":"The first"}`, once("used"))
			w.do(s.Method, s.path, s.body, once("used")).is(422, "idempotency_mismatch")
		}},
		{"with a store that is closed", withKey, func(t *testing.T, w *world, s sample) {
			w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) {
				return &formsvc.Principal{AccountID: w.mine.account.ID, Permissions: formsvc.AllPermissions()}, nil
			}})
			if err := w.store.Store.(io.Closer).Close(); err != nil { //nolint:forcetypeassert // every store has it
				t.Fatal(err)
			}
			w.do(s.Method, s.path, s.body).is(503, "unavailable")
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

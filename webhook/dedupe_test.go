package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

const eventID = "0193bb79-f340-7000-8000-000000000001" // of body

// begin returns the state of an event.
func begin(t *testing.T, d webhook.Deduper, id string) webhook.State {
	t.Helper()
	return must(d.Begin(t.Context(), id))
}

// serve serves r with handler and recovers a panic.
func serve(handler http.Handler, r *http.Request) (w *httptest.ResponseRecorder, panicked any) {
	w = httptest.NewRecorder()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { panicked = recover() }()
		handler.ServeHTTP(w, r)
	})
	wg.Wait()
	return w, panicked
}

func TestHandlerRecordsTheOutcome(t *testing.T) {
	t.Parallel()
	status := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	tests := []struct {
		name    string
		next    http.HandlerFunc
		code    int
		handled bool
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {}, 200, true},
		{"200", status(200), 200, true},
		{"204", status(204), 204, true},
		{"299", status(299), 299, true},
		{"101", status(101), 101, false},
		{"304", status(304), 304, false},
		{"400", status(400), 400, false},
		{"410", status(410), 410, false},
		{"500", status(500), 500, false},
		{"write", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("ok"))
			w.WriteHeader(500)
		}, 200, true},
		{"write string", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok")
			w.WriteHeader(500)
		}, 200, true},
		{"copy", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader("ok, and more"), 2))
			w.WriteHeader(500)
		}, 200, true},
		{"flush", func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			w.WriteHeader(500)
		}, 200, true},
		{"the first status counts", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			w.WriteHeader(200)
		}, 503, false},
		{"panic", func(http.ResponseWriter, *http.Request) { panic("broken") }, 200, false},
		{"panic after the answer", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			panic("broken")
		}, 200, false},
		{"end of the goroutine", func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, 200, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dedupe := webhook.NewMemoryDeduper(nil)
			v := newVerifier(t, &webhook.Options{Deduper: dedupe}, secret)
			w, panicked := serve(v.Handler(tt.next), webhooktest.NewRequest(secret, []byte(body)))
			equal(t, w.Code, tt.code, "got %d")
			equal(t, strings.HasPrefix(tt.name, "panic"), panicked == "broken", "the panic that went on is %v: %t", panicked)
			want := webhook.Fresh
			if tt.handled {
				want = webhook.Done
			}
			equal(t, begin(t, dedupe, eventID), want, "the event is %v")
		})
	}
}

// Interim responses say nothing about the event. httptest.ResponseRecorder treats them as final
// ones, so the test uses a server.
func TestHandlerIgnoresInterimResponses(t *testing.T) {
	t.Parallel()
	for final, want := range map[int]webhook.State{http.StatusOK: webhook.Done, http.StatusInternalServerError: webhook.Fresh} {
		dedupe := webhook.NewMemoryDeduper(nil)
		v := newVerifier(t, &webhook.Options{Deduper: dedupe}, secret)
		server := httptest.NewServer(v.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(final)
		})))
		got := post(t, server.URL, body)
		server.Close() // waits for the handler
		equal(t, got.StatusCode, final, "got %d")
		equal(t, begin(t, dedupe, eventID), want, "after %d the event is %v", final)
	}
}

// post delivers content and returns the response with its body closed.
func post(t *testing.T, url, content string) *http.Response {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(content)))
	r.Header = webhooktest.Header(secret, []byte(content))
	answer := must(http.DefaultClient.Do(r))
	_ = answer.Body.Close()
	return answer
}

func TestHandlerRepliesToDuplicates(t *testing.T) {
	t.Parallel()
	var rejected []error
	v := newVerifier(t, &webhook.Options{
		Deduper:  webhook.NewMemoryDeduper(nil),
		OnReject: func(_ *http.Request, err error) { rejected = append(rejected, err) },
	}, secret)
	calls := 0
	var handler http.Handler
	handler = v.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			twin, _ := serve(handler, webhooktest.NewRequest(secret, []byte(body)))
			if twin.Code != http.StatusServiceUnavailable || twin.Header().Get("Retry-After") != "60" {
				t.Errorf("while it is handled: got %d, Retry-After %q", twin.Code, twin.Header().Get("Retry-After"))
			}
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	for i, want := range []int{http.StatusAccepted, http.StatusOK, http.StatusOK} {
		if w, _ := serve(handler, webhooktest.NewRequest(secret, []byte(body))); w.Code != want || w.Body.Len() != 0 {
			t.Errorf("%d: got %d %q, want %d", i, w.Code, w.Body, want)
		}
	}
	if w, _ := serve(handler, webhooktest.NewRequest("another", []byte(body))); w.Code != http.StatusUnauthorized {
		t.Errorf("a forged repetition: got %d", w.Code)
	}
	equal(t, calls, 1, "handled %d times")
	if len(rejected) != 2 || !errors.Is(rejected[0], webhook.ErrBusy) || !errors.Is(rejected[1], webhook.ErrMismatch) {
		t.Errorf("OnReject got %v", rejected)
	}
}

func TestHandlerPassesOnEventsWithoutIdentifier(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, &webhook.Options{Deduper: webhook.NewMemoryDeduper(nil)}, secret)
	calls := 0
	handler := v.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	for range 2 {
		for _, content := range []string{`{"event":"response.created"}`, `hello`, ``} {
			if w, _ := serve(handler, webhooktest.NewRequest(secret, []byte(content))); w.Code != http.StatusOK {
				t.Errorf("%q: got %d", content, w.Code)
			}
		}
	}
	equal(t, calls, 6, "handled %d times")
}

// A stubDeduper returns what a test sets, and checks its contexts.
type stubDeduper struct {
	t         *testing.T
	state     webhook.State
	begin     error
	note      error
	committed int
	aborted   int
}

func (s *stubDeduper) Begin(context.Context, string) (webhook.State, error) { return s.state, s.begin }

func (s *stubDeduper) Commit(ctx context.Context, _ string) error {
	s.committed++
	return s.noted(ctx)
}

func (s *stubDeduper) Abort(ctx context.Context, _ string) error {
	s.aborted++
	return s.noted(ctx)
}

func (s *stubDeduper) noted(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); ctx.Err() != nil || !bounded {
		s.t.Errorf("noted with a context that is over (%v) or has no end", ctx.Err())
	}
	if _, ok := webhook.FromContext(ctx); !ok {
		s.t.Error("noted without the request's values")
	}
	return s.note
}

func TestHandlerWhenTheDeduperFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("10.0.0.1 left")
	tests := []struct {
		name   string
		stub   stubDeduper
		called bool
		code   int
		cause  error
	}{
		{"begin", stubDeduper{begin: broken}, false, http.StatusInternalServerError, broken},
		{"begin, and a state", stubDeduper{begin: broken, state: webhook.Fresh}, false, http.StatusInternalServerError, broken},
		{"no state", stubDeduper{}, false, http.StatusInternalServerError, webhook.ErrDeduper},
		{"begin, with an error that has a status", stubDeduper{begin: webhook.ErrMismatch}, false, http.StatusInternalServerError, webhook.ErrMismatch},
		{"unknown state", stubDeduper{state: 9}, false, http.StatusInternalServerError, webhook.ErrDeduper},
		{"commit", stubDeduper{state: webhook.Fresh, note: broken}, true, http.StatusAccepted, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var rejected []error
			tt.stub.t = t
			v := newVerifier(t, &webhook.Options{
				Deduper:  &tt.stub,
				OnReject: func(_ *http.Request, err error) { rejected = append(rejected, err) },
			}, secret)
			called := false
			handler := v.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				called = true
				w.WriteHeader(http.StatusAccepted)
			}))
			w, _ := serve(handler, webhooktest.NewRequest(secret, []byte(body)))
			if w.Code != tt.code || called != tt.called {
				t.Errorf("got %d, called %v", w.Code, called)
			}
			if strings.Contains(w.Body.String(), "10.0.0.1") {
				t.Errorf("the answer says %q", w.Body)
			}
			if len(rejected) != 1 || !errors.Is(rejected[0], webhook.ErrDeduper) || !errors.Is(rejected[0], tt.cause) {
				t.Errorf("OnReject got %v", rejected)
			}
		})
	}
}

// If the client disconnects before the response, it sends the event again: the event counts as
// handled only if the next handler has replied so.
func TestHandlerWhenTheClientDisconnects(t *testing.T) {
	t.Parallel()
	for answered, want := range map[bool]stubDeduper{true: {committed: 1}, false: {aborted: 1}} {
		stub := &stubDeduper{t: t, state: webhook.Fresh}
		v := newVerifier(t, &webhook.Options{Deduper: stub}, secret)
		ctx, leave := context.WithCancel(t.Context())
		handler := v.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			leave()
			if answered {
				w.WriteHeader(http.StatusOK)
			}
		}))
		serve(handler, webhooktest.NewRequest(secret, []byte(body)).WithContext(ctx))
		if stub.committed != want.committed || stub.aborted != want.aborted {
			t.Errorf("answered %v: %d commits, %d aborts", answered, stub.committed, stub.aborted)
		}
	}
}

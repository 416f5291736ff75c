package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// The service gets the status that makes it stop or retry, and nothing of the reason.
func TestEventHandler(t *testing.T) {
	t.Parallel()
	private := errors.New("dial 10.0.0.1: refused")
	for _, tt := range []struct {
		name, body string
		fails      error
		status     int
		want       error
		then       webhook.State
	}{
		{"handled", body, nil, http.StatusOK, nil, webhook.Done},
		{"failed", body, private, http.StatusInternalServerError, webhook.ErrNotHandled, webhook.Fresh},
		{"failed like a request", body, webhook.ErrMismatch, http.StatusInternalServerError, webhook.ErrNotHandled, webhook.Fresh},
		{"not an event", `{"id":"` + eventID + `","event":"response.created","data":7}`, nil, http.StatusBadRequest, webhook.ErrMalformedEvent, webhook.Fresh},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var rejected []error
			memory := webhook.NewMemoryDeduper(nil)
			v := newVerifier(t, &webhook.Options{
				Deduper: memory, OnReject: func(_ *http.Request, err error) { rejected = append(rejected, err) },
			}, secret)
			calls := 0
			handler := v.EventHandler(func(ctx context.Context, e webhook.Event) error {
				calls++
				if d, ok := webhook.FromContext(ctx); !ok || d.EventID != e.ID || e.Data.Campaign.Title != "Summer grant" {
					t.Errorf("got %+v of %+v", e, d)
				}
				return tt.fails
			})
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, webhooktest.NewRequest(secret, []byte(tt.body)))
			if w.Code != tt.status || strings.Contains(w.Body.String(), "10.0.0.1") {
				t.Errorf("answered %d %q, want %d", w.Code, w.Body, tt.status)
			}
			if tt.want == nil && (calls != 1 || rejected != nil) {
				t.Errorf("called %d times, OnReject got %v", calls, rejected)
			}
			if tt.want != nil && (len(rejected) != 1 || !errors.Is(rejected[0], tt.want) || !errors.Is(rejected[0], tt.fails) && tt.fails != nil) {
				t.Errorf("OnReject got %v, want %v and %v", rejected, tt.want, tt.fails)
			}
			equal(t, begin(t, memory, parse(t, "response.created").ID), webhook.Fresh, "another event is %v")
			id, _, _ := strings.Cut(strings.TrimPrefix(tt.body, `{"id":"`), `"`)
			equal(t, begin(t, memory, id), tt.then, "then the event is %v")
		})
	}
}

func TestEventHandlerSeesAuthenticRequestsOnly(t *testing.T) {
	t.Parallel()
	handler := newVerifier(t, nil, secret).EventHandler(func(context.Context, webhook.Event) error {
		t.Error("it was called")
		return nil
	})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, webhooktest.NewRequest("another secret", []byte(body)))
	equal(t, w.Code, http.StatusUnauthorized, "answered %d")
}

func TestResponseValue(t *testing.T) {
	t.Parallel()
	r := webhook.Response{Responses: map[string]webhook.Answer{"plan": {Value: []string{"big", "small"}}, "remarks": {Value: []string{}}}}
	for module, want := range map[string]string{"plan": "big", "remarks": "", "other": ""} {
		equal(t, r.Value(module), want, "%s: got %q", module)
	}
	equal(t, (webhook.Response{}).Value("plan"), "", "of none: got %q")
}

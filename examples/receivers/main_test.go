package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

const (
	newSecret = "whsec_/hL5ZBpJ0GhVvgE9xMBsSDfO4i4DP8Ff7c6nGIyPnWQ="
	oldSecret = "whsec_c2VjcmV0IHVudGlsIHllc3RlcmRheQ=="
)

func TestReceivers(t *testing.T) {
	for _, router := range []string{"net/http", "chi", "gin", "echo"} {
		t.Run(router, func(t *testing.T) { receives(t, router) })
	}
}

// receives tests a receiver over a connection, with requests of the service and with forged ones.
func receives(t *testing.T, router string) {
	if _, err := newHandler(router, nil, nil); !errors.Is(err, webhook.ErrNoSecret) {
		t.Fatalf("without secrets: got %v, want ErrNoSecret", err)
	}
	var handled []string
	var fails error
	handler, err := newHandler(router, []string{newSecret, oldSecret}, func(_ context.Context, e webhook.Event) error {
		handled = append(handled, e.ID+" "+e.Data.Response.User.Email)
		return fails
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)

	body := func(n int) []byte {
		return fmt.Appendf(nil, `{"id":"e-%d","event":"response.created","data":{"response":{"user":{"email":"ada@example.com"}}}}`, n)
	}
	forged := webhooktest.Header(newSecret, body(1))
	forged.Set(webhook.SignatureHeader, webhook.Sign("guessed", body(1)))
	replayed := webhooktest.Header(newSecret, body(1))
	webhook.SetSignatures(replayed, "e-1", time.Now().Add(-time.Hour), body(1), newSecret)
	for _, tt := range []struct {
		name    string
		header  http.Header
		body    []byte
		fails   error
		status  int
		handled []string
	}{
		{"signed", webhooktest.Header(newSecret, body(1)), body(1), nil, http.StatusOK, []string{"e-1 ada@example.com"}},
		{"repeated", webhooktest.Header(newSecret, body(1)), body(1), nil, http.StatusOK, nil},
		{"signed with the old secret", webhooktest.Header(oldSecret, body(2)), body(2), nil, http.StatusOK, []string{"e-2 ada@example.com"}},
		{"failed", webhooktest.Header(newSecret, body(3)), body(3), errors.New("no database"), http.StatusInternalServerError, []string{"e-3 ada@example.com"}},
		{"failed, and repeated", webhooktest.Header(newSecret, body(3)), body(3), nil, http.StatusOK, []string{"e-3 ada@example.com"}},
		{"forged", forged, body(1), nil, http.StatusUnauthorized, nil},
		{"another body", webhooktest.Header(newSecret, body(1)), body(4), nil, http.StatusUnauthorized, nil},
		{"another secret", webhooktest.Header("guessed", body(5)), body(5), nil, http.StatusUnauthorized, nil},
		{"not signed", nil, body(5), nil, http.StatusUnauthorized, nil},
		{"replayed after an hour", replayed, body(1), nil, http.StatusUnauthorized, nil},
		{"signed, but not an event", webhooktest.Header(newSecret, []byte("hello")), []byte("hello"), nil, http.StatusBadRequest, nil},
	} {
		handled, fails = nil, tt.fails
		if status := send(t, server.URL+"/hooks", tt.header, tt.body); status != tt.status {
			t.Errorf("%s: answered %d, want %d", tt.name, status, tt.status)
		}
		if fmt.Sprint(handled) != fmt.Sprint(tt.handled) {
			t.Errorf("%s: handled %v, want %v", tt.name, handled, tt.handled)
		}
	}
}

// send posts a body and returns the status.
func send(t *testing.T, url string, header http.Header, body []byte) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

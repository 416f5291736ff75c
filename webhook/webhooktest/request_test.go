package webhooktest_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

const secret = "whsec_5f1c0b9e4d7a42d3"

func TestNewRequest(t *testing.T) {
	body := `{"event":"file.uploaded"}`
	r := webhooktest.NewRequest(secret, []byte(body))
	if r.Method != http.MethodPost || r.URL.Path != "/" || r.ContentLength != int64(len(body)) {
		t.Errorf("got %s %s with %d bytes", r.Method, r.URL.Path, r.ContentLength)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json",
		// printf '%s' '{"event":"file.uploaded"}' | openssl dgst -sha256 -hmac 'whsec_5f1c0b9e4d7a42d3'
		"x-service-signature": "7d9a10c03b2ab963dca24b277d2ba982bd4ae18c6e96bbbf2df9a2d46183bae0",
		"x-service-event":     "file.uploaded",
		"x-service-attempt":   "1",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, err := io.ReadAll(r.Body); err != nil || string(got) != body {
		t.Errorf("the body reads %q, %v", got, err)
	}
}

func TestHeaderIdentifiesTheBody(t *testing.T) {
	id := func(key, body string) string {
		return webhooktest.Header(key, []byte(body)).Get(webhook.DeliveryHeader)
	}
	if id(secret, "a") != id("another", "a") {
		t.Error("the same body has two delivery identifiers")
	}
	if id(secret, "a") == id(secret, "b") {
		t.Error("two bodies have the same delivery identifier")
	}
	if len(id(secret, "")) != 36 {
		t.Errorf("%q is not a UUID", id(secret, ""))
	}
}

// The headers belong to a request that is sent now, and the time can be changed.
func TestHeaderIsOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v, err := webhook.NewVerifier([]string{secret}, &webhook.Options{Tolerance: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		body := []byte("{}")
		h := webhooktest.Header(secret, body)
		if d, err := v.Verify(body, h); err != nil || !d.SentAt.Equal(time.Now()) {
			t.Errorf("sent at %s, %v, want %s", d.SentAt, err, time.Now())
		}
		if h.Get(webhook.StandardIDHeader) != h.Get(webhook.DeliveryHeader) {
			t.Errorf("webhook-id is %q", h.Get(webhook.StandardIDHeader))
		}
		event := webhooktest.Header(secret, []byte(`{"id":"e-1","event":"response.created"}`))
		if got := event.Get(webhook.StandardIDHeader); got != "e-1" {
			t.Errorf("webhook-id of an event is %q", got)
		}
		webhook.SetSignatures(h, "m-1", time.Now().Add(-time.Hour), body, secret)
		if _, err := v.Verify(body, h); !errors.Is(err, webhook.ErrTooOld) {
			t.Errorf("an hour old: %v", err)
		}
	})
}

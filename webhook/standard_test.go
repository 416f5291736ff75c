package webhook_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

const messageID = "0193bb79-f340-7000-8000-000000000001"

// sentAt is when the requests of these tests were sent.
var sentAt = time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)

// at returns options that verify requests at that time.
func at(now time.Time) *webhook.Options {
	return &webhook.Options{Tolerance: 5 * time.Minute, Now: func() time.Time { return now }}
}

// standard returns the headers of body, sent at sentAt: x-service-signature with the last of keys,
// and Standard Webhooks with all of them.
func standard(body string, keys ...string) http.Header {
	h := http.Header{}
	webhook.SetSignatures(h, messageID, sentAt, []byte(body), keys...)
	return h
}

func TestStandardVectors(t *testing.T) {
	t.Parallel()
	all := must(webhooktest.StandardVectors())
	for _, vec := range all {
		t.Run(vec.Name, func(t *testing.T) {
			t.Parallel()
			opts := &webhook.Options{Tolerance: vec.Tolerance, Now: func() time.Time { return vec.Now }}
			v := newVerifier(t, opts, vec.Secrets...)
			d, err := v.Verify(vec.Body, vec.Header)
			if !errors.Is(err, vec.Want) {
				t.Fatalf("Verify: got %v, want %v", err, vec.Want)
			}
			if err == nil && strconv.FormatInt(d.SentAt.Unix(), 10) != vec.Header.Get(webhook.StandardTimestampHeader) {
				t.Errorf("sent at %s, want %s", d.SentAt, vec.Header.Get(webhook.StandardTimestampHeader))
			}
			if err != nil && (!d.SentAt.IsZero() || d.Body != nil) {
				t.Errorf("got %+v, want the zero delivery", d)
			}
			if err != nil && webhook.Status(err) != http.StatusUnauthorized {
				t.Errorf("status %d, want 401", webhook.Status(err))
			}
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(vec.Body))
			r.Header = vec.Header
			if _, err := v.VerifyRequest(nil, r); !errors.Is(err, vec.Want) {
				t.Errorf("VerifyRequest: got %v, want %v", err, vec.Want)
			}
			if _, err := newVerifier(t, nil, vec.Secrets...).Verify(vec.Body, vec.Header); err != nil {
				t.Errorf("without a tolerance the headers were looked at: %v", err)
			}
		})
	}
}

func TestSetSignatures(t *testing.T) {
	t.Parallel()
	h := http.Header{"Webhook-Signature": {"v1,old", "v1,older"}, "Other": {"stays"}}
	webhook.SetSignatures(h, messageID, sentAt, []byte(body), "new", "old")
	sign := func(key string) string { return standard(body, key).Get(webhook.StandardSignatureHeader) }
	for name, want := range map[string]string{
		webhook.SignatureHeader:         webhook.Sign("old", []byte(body)),
		webhook.StandardIDHeader:        messageID,
		webhook.StandardTimestampHeader: "1795249800",
		webhook.StandardSignatureHeader: sign("new") + " " + sign("old"),
		"Other":                         "stays",
	} {
		if got := h.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	h.Add(webhook.StandardIDHeader, "more")
	equal(t, h.Get(webhook.StandardTimestampHeader), "1795249800", "adding to one header changed another: %v")
}

func TestToleranceNeedsTheServiceSignature(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, at(sentAt), secret)
	h := standard(body, secret)
	h.Set(webhook.SignatureHeader, strings.Repeat("0", 64))
	if _, err := v.Verify([]byte(body), h); !errors.Is(err, webhook.ErrMismatch) {
		t.Errorf("wrong: got %v, want ErrMismatch", err)
	}
	h.Del(webhook.SignatureHeader)
	if _, err := v.Verify([]byte(body), h); !errors.Is(err, webhook.ErrNoSignature) {
		t.Errorf("missing: got %v, want ErrNoSignature", err)
	}
}

// While the secret changes, x-service-signature uses the old one and Standard Webhooks both.
func TestToleranceDuringARotation(t *testing.T) {
	t.Parallel()
	h := standard(body, "new", "old")
	for _, tt := range []struct {
		name    string
		secrets []string
		index   int
		want    error
	}{
		{"not yet told", []string{"old"}, 0, nil},
		{"both", []string{"new", "old"}, 1, nil},
		{"too early", []string{"new"}, 0, webhook.ErrMismatch},
		{"neither", []string{"older"}, 0, webhook.ErrMismatch},
	} {
		d, err := newVerifier(t, at(sentAt), tt.secrets...).Verify([]byte(body), h)
		if !errors.Is(err, tt.want) || d.SecretIndex != tt.index {
			t.Errorf("%s: got index %d, %v, want %d, %v", tt.name, d.SecretIndex, err, tt.index, tt.want)
		}
	}
	v := newVerifier(t, at(sentAt), "new", "old")
	h.Set(webhook.StandardSignatureHeader, standard(body, "new").Get(webhook.StandardSignatureHeader))
	if _, err := v.Verify([]byte(body), h); err != nil {
		t.Errorf("one signature by each secret: %v", err)
	}
}

// A recorded request is sent again later, by the default clock.
func TestToleranceRefusesAReplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := newVerifier(t, &webhook.Options{Tolerance: 5 * time.Minute}, secret)
		start := time.Now()
		h := webhooktest.Header(secret, []byte(body))
		time.Sleep(5 * time.Minute)
		if d, err := v.Verify([]byte(body), h); err != nil || !d.SentAt.Equal(start) {
			t.Errorf("after 5 minutes: sent at %s, %v, want %s", d.SentAt, err, start)
		}
		time.Sleep(time.Nanosecond)
		if _, err := v.Verify([]byte(body), h); !errors.Is(err, webhook.ErrTooOld) {
			t.Errorf("later: got %v, want ErrTooOld", err)
		}
		h.Set(webhook.StandardTimestampHeader, "946685100")
		if _, err := v.Verify([]byte(body), h); !errors.Is(err, webhook.ErrMismatch) {
			t.Errorf("with another time: got %v, want ErrMismatch", err)
		}
	})
}

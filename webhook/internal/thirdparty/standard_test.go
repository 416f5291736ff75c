package thirdparty_test

import (
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// The library of Standard Webhooks, with its own clock, and this package accept
// each other's signatures.
func TestStandardWebhooksAgrees(t *testing.T) {
	t.Parallel()
	raw := func(s string) (*standardwebhooks.Webhook, error) { return standardwebhooks.NewWebhookRaw([]byte(s)) }
	tests := []struct {
		name, secret string
		library      func(string) (*standardwebhooks.Webhook, error)
	}{
		{"generated secret", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", standardwebhooks.NewWebhook},
		{"secret of this package's tests", secret, standardwebhooks.NewWebhook},
		{"text without the prefix", "a secret with spaces", raw},
		{"text with the prefix", "whsec_not base64!", raw},
		{"base64 without the prefix", "c2VjcmV0", raw},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			library, err := tt.library(tt.secret)
			if err != nil {
				t.Fatal(err)
			}
			v := newVerifier(t, &webhook.Options{Tolerance: 5 * time.Minute}, tt.secret)
			for _, content := range []string{body, "", "a.b.c", "\xff\x00", strings.Repeat("a", 1<<20)} {
				now := time.Now()
				ours := webhooktest.Header(tt.secret, []byte(content))
				if err := library.Verify([]byte(content), ours); err != nil {
					t.Errorf("%.20q: the library refuses ours: %v", content, err)
				}
				theirs, err := library.Sign(messageID, now, []byte(content))
				if err != nil {
					t.Fatal(err)
				}
				if got := webhook.SignStandard([]byte(tt.secret), messageID, now, []byte(content)); got != theirs {
					t.Errorf("%.20q: got %s, want the library's %s", content, got, theirs)
				}
				h := signed(tt.secret, content)
				webhook.SetStandard(h, messageID, now, nil)
				h.Set(standardwebhooks.HeaderWebhookSignature, theirs)
				if d, err := v.Verify([]byte(content), h); err != nil || d.SentAt.Unix() != now.Unix() {
					t.Errorf("%.20q: sent at %s, %v", content, d.SentAt, err)
				}
			}
		})
	}
}

package thirdparty_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// library returns the Standard Webhooks library with the key by this package's rule, which is
// implemented here independently.
func library(t *testing.T, key string) *standardwebhooks.Webhook {
	t.Helper()
	wh, err := standardwebhooks.NewWebhookRaw([]byte(key))
	if rest, ok := strings.CutPrefix(key, "whsec_"); ok {
		if decoded, failed := base64.StdEncoding.DecodeString(rest); failed == nil && strings.Trim(string(decoded), "\x00") != "" {
			wh, err = standardwebhooks.NewWebhook(key)
		}
	}
	noError(t, err)
	return wh
}

// FuzzVerifyStandard checks that the library of Standard Webhooks also accepts every accepted
// request, and that a request has one identifier and one time.
func FuzzVerifyStandard(f *testing.F) {
	all := must(webhooktest.StandardVectors())
	for _, vec := range all {
		if len(vec.Body) < 4096 {
			f.Add(vec.Secrets[0], vec.Body, vec.Header.Get(webhook.StandardIDHeader), vec.Header.Get(webhook.StandardTimestampHeader),
				vec.Header.Get(webhook.StandardSignatureHeader), vec.Now.Unix())
		}
	}
	f.Fuzz(func(t *testing.T, key string, content []byte, id, timestamp, signatures string, now int64) {
		opts := at(time.Unix(now, 0))
		v, err := webhook.NewVerifier([]string{key}, opts)
		if err != nil {
			return
		}
		h := http.Header{}
		h.Set(webhook.SignatureHeader, webhook.Sign(key, content))
		h.Set(webhook.StandardIDHeader, id)
		h.Set(webhook.StandardTimestampHeader, timestamp)
		h.Set(webhook.StandardSignatureHeader, signatures)
		d, err := v.Verify(content, h)
		if err != nil {
			if webhook.Status(err) != http.StatusUnauthorized || !d.SentAt.IsZero() {
				t.Fatalf("got %v and %s", err, d.SentAt)
			}
			return
		}
		if err := library(t, key).VerifyIgnoringTimestamp(content, h); err != nil {
			t.Fatalf("the library says %v", err)
		}
		if opts.Now().Sub(d.SentAt).Abs() > opts.Tolerance || strings.Contains(id, ".") {
			t.Fatalf("accepted identifier %q, sent at %s", id, d.SentAt)
		}
	})
}

// FuzzSetSignatures checks that signatures equal those of the library of Standard Webhooks, and that
// the verifier accepts all except those documented as refused.
func FuzzSetSignatures(f *testing.F) {
	f.Add("whsec_c2VjcmV0cw==", "id", int64(1795249800), []byte("{}"))
	f.Add("whsec_c2Vj\ncmV0", "id", int64(1795249800), []byte("{}"))
	f.Add("whsec_AAAA", "i.d", int64(-1), []byte(""))
	f.Add("secret", "", int64(253402300800), []byte("{}"))
	f.Fuzz(func(t *testing.T, key, id string, seconds int64, content []byte) {
		sent := time.Unix(seconds, 0)
		want := must(library(t, key).Sign(id, sent, content))
		h := http.Header{}
		webhook.SetSignatures(h, id, sent, content, "another", key)
		if got := h.Get(webhook.StandardSignatureHeader); !strings.HasSuffix(got, " "+want) {
			t.Fatalf("got %q, want %q at the end", got, want)
		}
		v, err := webhook.NewVerifier([]string{key}, at(sent))
		if err != nil {
			return
		}
		usable := id != "" && !strings.Contains(id, ".") && seconds >= 0 && seconds <= 253402300799
		if _, err := v.Verify(content, h); usable != (err == nil) {
			t.Fatalf("identifier %q, %d seconds: %v", id, seconds, err)
		}
	})
}

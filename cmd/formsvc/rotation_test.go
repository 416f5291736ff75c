//go:build long

package main_test

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// verifies reports whether the library of Standard Webhooks verifies a delivery with the secret.
func verifies(t testing.TB, secret string, got *webhooktest.Received) bool {
	t.Helper()
	w, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	if strings.HasPrefix(secret, "whsec_") {
		w, err = standardwebhooks.NewWebhook(secret)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w.Verify(got.Delivery.Body, got.Header) == nil
}

// signedByOpenSSL reports whether a delivery has the specification's signature, computed by openssl.
func signedByOpenSSL(t testing.TB, secret string, got *webhooktest.Received) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), lookFor(t, "openssl"), "dgst", "-sha256", "-binary", "-hmac", secret)
	cmd.Stdin = bytes.NewReader(got.Delivery.Body)
	sum, err := cmd.Output()
	if err != nil {
		t.Fatalf("openssl: %v", err)
	}
	return got.Header.Get(webhook.SignatureHeader) == hex.EncodeToString(sum)
}

// Every delivery verifies during a rotation. In the grace period, receivers with the old secret keep working, and those
// with the new one use the other header. Retries are signed in the same way. Without a grace period, the old secret stops
// signing at once.
func TestRotateSecret(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-retries", "10ms")
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Rotate")
		const third = "the third secret of the tests"
		r := webhooktest.NewReceiver(t, []string{secret, third}, nil)
		r.Answer(webhooktest.Reply{Status: 500})
		target, err := url.Parse(r.URL())
		if err != nil {
			t.Fatal(err)
		}
		// The first attempt ends after the rotation.
		rotates, slow := make(chan struct{}), httputil.NewSingleHostReverseProxy(target)
		slow.ModifyResponse = func(*http.Response) error { <-rotates; return nil }
		between := httptest.NewServer(slow)
		t.Cleanup(between.Close)
		over := sync.OnceFunc(func() { close(rotates) })
		t.Cleanup(over) // runs before Close, which waits for held requests
		uuid := hook(t, dsn, between.URL, "response.created")
		c.submit(t, campaign, "before")
		before := arrivals(t, r, 1)[0]
		if !verifies(t, secret, &before) || !signedByOpenSSL(t, secret, &before) {
			t.Errorf("before the rotation it is signed as %v", before.Header)
		}

		rotated := attempt(t, dsn, "webhooks", "rotate", uuid)
		fresh, rest, _ := strings.Cut(rotated.out, "\n")
		if rotated.status != 0 || !strings.HasPrefix(fresh, "whsec_") || rest != "" || strings.Contains(rotated.err, fresh) {
			t.Fatalf("webhooks rotate prints %q and %q with status %d; want the secret alone", rotated.out, rotated.err, rotated.status)
		}
		over()
		arrivals(t, r, 2) // with the retry
		c.submit(t, campaign, "during")
		got := arrivals(t, r, 3)
		for _, d := range got[1:] {
			if !verifies(t, secret, &d) || !verifies(t, fresh, &d) || !signedByOpenSSL(t, secret, &d) ||
				len(strings.Fields(d.Header.Get("Webhook-Signature"))) != 2 {
				t.Errorf("during the grace period attempt %d is signed as %v", d.Delivery.Attempt, d.Header)
			}
		}
		if got[1].Header.Get("X-Service-Attempt") != "2" || got[1].Header.Get("Webhook-Id") != before.Header.Get("Webhook-Id") {
			t.Errorf("the retry comes with %v", got[1].Header)
		}

		record := object(t, []byte(manage(t, dsn, "webhooks", "rotate", uuid, "--grace", "0s", "--secret", third, "--json")))
		if record["secret"] != third || record["previousSecretExpiresAt"] != nil {
			t.Errorf("webhooks rotate --json prints %v", record)
		}
		c.submit(t, campaign, "after")
		eventually(t, "the last delivery arrives", func() bool { return len(r.Deliveries()) == 4 })
		last := r.Deliveries()[3]
		if verifies(t, secret, &last) || verifies(t, fresh, &last) || !verifies(t, third, &last) || !signedByOpenSSL(t, third, &last) {
			t.Errorf("without a grace period it is signed as %v", last.Header)
		}
	})
}

// The old secret stops signing when the grace period ends.
func TestGracePeriodEnds(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Grace")
		const second = "the second secret of the tests"
		r := webhooktest.NewReceiver(t, []string{secret, second}, nil)
		uuid := hook(t, dsn, r.URL(), "response.created")
		manage(t, dsn, "webhooks", "rotate", uuid, "--grace", "3s", "--secret", second)
		eventually(t, "the old secret stops signing", func() bool {
			n := len(r.Deliveries())
			c.submit(t, campaign, "x")
			got, err := r.Wait(t.Context(), n+1)
			if err != nil {
				t.Fatal(err)
			}
			d := got[n]
			signatures := len(strings.Fields(d.Header.Get("Webhook-Signature")))
			if by := map[int]string{1: second, 2: secret}[signatures]; !signedByOpenSSL(t, by, &d) || !verifies(t, second, &d) {
				t.Errorf("delivery %d is signed as %v", n, d.Header)
			}
			time.Sleep(100 * time.Millisecond) // between two looks
			return signatures == 1
		})
		shown := object(t, c.want(t, http.StatusOK, http.MethodGet, "/v1/webhooks/"+uuid, nil, nil).body)
		if shown["previousSecretExpiresAt"] != nil {
			t.Errorf("after the grace period the webhook is %v", shown)
		}
	})
}

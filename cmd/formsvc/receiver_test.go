package main_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// secret signs the deliveries of the tests' webhooks.
const secret = "a secret of the tests, äöü"

// signedBySpec reports whether the signature follows the specification: the lowercase hexadecimal HMAC-SHA-256 of the raw
// body, keyed with the secret. It shares no code with the program.
func signedBySpec(secret string, body []byte, header http.Header) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	values := header.Values("x-service-signature")
	return len(values) == 1 && values[0] == hex.EncodeToString(mac.Sum(nil))
}

// hook creates a webhook with the command, like an operator while the server runs, and returns its UUID.
func hook(t testing.TB, dsn, url, events string, flags ...string) string {
	t.Helper()
	args := slices.Concat([]string{"webhooks", "create", "--url", url, "--events", events, "--secret", secret, "--json"},
		allowLoopback, flags)
	var v struct {
		UUID string `json:"uuid"`
	}
	if err := json.Unmarshal([]byte(manage(t, dsn, args...)), &v); err != nil {
		t.Fatalf("webhooks create --json: %v", err)
	}
	return v.UUID
}

// receiver starts a receiver of deliveries that are signed with secret.
func receiver(t testing.TB) *webhooktest.Receiver {
	t.Helper()
	return webhooktest.NewReceiver(t, []string{secret}, nil)
}

// arrivals waits until the receiver got n requests and returns all of them. Each must be signed according to the
// specification.
func arrivals(t testing.TB, r *webhooktest.Receiver, n int) []webhooktest.Received {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := r.Wait(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if !signedBySpec(secret, got[i].Delivery.Body, got[i].Header) {
			t.Errorf("delivery %d is not signed as the specification says: %v", i, got[i].Header)
		}
	}
	for _, bad := range r.Rejected() {
		t.Errorf("a request did not verify: %v", bad.Err)
	}
	return got
}

// event has the fields of a delivery that the tests check.
type event struct {
	ID        string `json:"id"`
	Event     string `json:"event"`
	Timestamp string `json:"timestamp"`
	Data      struct {
		Campaign campaign `json:"campaign"`
		Response response `json:"response"`
	} `json:"data"`
}

// object parses a JSON object.
func object(t testing.TB, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("not a JSON object: %v\n%s", err, text)
	}
	return v
}

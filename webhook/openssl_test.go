//go:build long

package webhook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// openSSL returns the HMAC-SHA-256 that the openssl program computes.
func openSSL(t *testing.T, message []byte, key ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "openssl", append([]string{"dgst", "-sha256", "-binary"}, key...)...)
	cmd.Stdin = bytes.NewReader(message)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("openssl: %v (the test needs the program)", err)
	}
	return out
}

// Both signatures agree with an independent program for random keys and bodies.
func TestSignaturesAgreeWithTheOpenSSLProgram(t *testing.T) {
	t.Parallel()
	seed := [32]byte{1}
	random := rand.NewChaCha8(seed)
	numbers := rand.New(random)
	fill := func(n int) []byte {
		b := make([]byte, n)
		_, _ = random.Read(b)
		return b
	}
	for i := range 40 {
		key, content := fill(1+numbers.IntN(100)), fill(numbers.IntN(4096))
		id := hex.EncodeToString(fill(1 + numbers.IntN(20)))
		sent := time.Unix(numbers.Int64N(1<<33), numbers.Int64N(1e9))
		message := append(fmt.Appendf(nil, "%s.%d.", id, sent.Unix()), content...)
		byBytes := []string{"-mac", "HMAC", "-macopt", "hexkey:" + hex.EncodeToString(key)}

		if got, want := webhook.Sign(key, content), hex.EncodeToString(openSSL(t, content, byBytes...)); got != want {
			t.Errorf("%d: Sign: got %s, want %s", i, got, want)
		}
		want := "v1," + base64.StdEncoding.EncodeToString(openSSL(t, message, byBytes...))
		if got := webhook.SignStandard(key, id, sent, content); got != want {
			t.Errorf("%d: SignStandard with the key as it is: got %s, want %s", i, got, want)
		}
		encoded := "whsec_" + base64.StdEncoding.EncodeToString(key)
		if got := webhook.SignStandard([]byte(encoded), id, sent, content); got != want {
			t.Errorf("%d: SignStandard with the key in base64: got %s, want %s", i, got, want)
		}
		// For the service's own signature the same text is the key, not decoded.
		want = hex.EncodeToString(openSSL(t, content, "-hmac", encoded))
		if got := webhook.Sign([]byte(encoded), content); got != want || strings.ToLower(got) != got {
			t.Errorf("%d: Sign with the prefix: got %s, want %s", i, got, want)
		}
	}
}

// The program computes the signature of every accepted vector with one of its secrets.
func TestVectorsAgreeWithTheOpenSSLProgram(t *testing.T) {
	t.Parallel()
	key := func(secret string) string { return "hexkey:" + hex.EncodeToString([]byte(secret)) }
	standards, err := webhooktest.StandardVectors()
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, vec := range append(vectors(t), standards...) {
		if vec.Want != nil {
			continue
		}
		accepted++
		signed := slices.ContainsFunc(vec.Secrets, func(secret string) bool {
			mac := openSSL(t, vec.Body, "-mac", "HMAC", "-macopt", key(secret))
			return hex.EncodeToString(mac) == vec.Header.Get(webhook.SignatureHeader)
		})
		if !signed {
			t.Errorf("%s: %s is of no secret", vec.Name, webhook.SignatureHeader)
		}
	}
	if accepted < 50 {
		t.Errorf("%d vectors are accepted", accepted)
	}
}

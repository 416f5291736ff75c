//go:build long

package main_test

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// Values that fail only when the server is built are usage errors too.
func TestServeRefusesUnusableOptions(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ flag, args string }{
		{"--base-url", "--base-url=forms.example.com"},
		{"--webhook-retries", "--webhook-retries=1m,-5m"},
		{"--webhook-timeout", "--webhook-timeout=-1s"},
		{"--webhook-lease", "--webhook-lease=20s"},
		{"--webhook-concurrency", "--webhook-concurrency=-1"},
		{"--retention", "--retention=-1h"},
		{"--retention", "--retention=30m --webhook-retries=1s"},
		{"--retention", "--retention=2h --webhook-retries=1h,1h"},
		{"--smtp", "--smtp=mail.example.com"},
		{"--mail-from", "--smtp=smtp://mail.example.com"},
		{"--secret-keys", "--secret-keys=short"},
		{"--metrics-addr", "--metrics-addr=nowhere"},
		{"--webhook-allow", "--webhook-allow=10.0.0.0"},
	} {
		dir := t.TempDir()
		r := invocation{args: append([]string{"serve", "--addr", "127.0.0.1:0"}, strings.Fields(x.args)...), dir: dir}.run(t)
		if r.status == 0 || !strings.Contains(r.err, x.flag) {
			t.Errorf("serve %s: status %d, %q, want the flag", x.args, r.status, r.err)
		}
		if r.status != 2 && x.flag != "--metrics-addr" {
			t.Errorf("serve %s: status %d, want 2", x.args, r.status)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("serve %s left %v behind (%v)", x.args, made, err)
		}
	}
}

// A second server at the same address exits before it touches the database.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	dir := t.TempDir()
	r := invocation{args: []string{"serve", "--addr", l.Addr().String()}, dir: dir}.run(t)
	if r.status != 1 || !strings.Contains(r.err, l.Addr().String()) {
		t.Errorf("serve: status %d, %q", r.status, r.err)
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("serve left %v behind (%v)", made, err)
	}
}

// The signatures match OpenSSL's. The constants were made with
//
//	openssl dgst -sha256 -hmac 'a secret of the tests, äöü'
func TestSignAndVerifyAgreeWithOpenSSL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ body, signature string }{
		{"", "5ba20c3e20d78f88b9bb3e764e1560225ffa5b1cb7b0799d28e695d07a11f2c1"},
		{`{"event":"response.created"}`, "085a3f34289ab518c9d3d237091a974f7cb74caea7b61712d4cd2fb7550b6b6b"},
		{"x\x00y\xff\n", "b2795564d455a68d25bab1bc0dcca67979079401cd30143a3abcd47996f010c4"},
	} {
		r := invocation{args: []string{"sign", "--secret", secret}, stdin: test.body}.run(t)
		if r.status != 0 || r.out != test.signature+"\n" {
			t.Errorf("sign %q: status %d, %q, want %s", test.body, r.status, r.out, test.signature)
		}
		if !signedBySpec(secret, []byte(test.body), http.Header{"X-Service-Signature": {test.signature}}) {
			t.Errorf("these tests compute another signature for %q", test.body)
		}
		verify := []string{"verify", "--secret", secret, "--signature", test.signature}
		if r := (invocation{args: verify, stdin: test.body}).run(t); r.status != 0 {
			t.Errorf("verify %q: status %d, %q", test.body, r.status, r.err)
		}
		if r := (invocation{args: verify, stdin: test.body + "\n"}).run(t); r.status != 1 || r.err == "" {
			t.Errorf("verify %q with a byte more: status %d, %q, want 1 and a reason", test.body, r.status, r.err)
		}
		verify[2] = "another secret"
		if r := (invocation{args: verify, stdin: test.body}).run(t); r.status != 1 {
			t.Errorf("verify %q with another secret: status %d, want 1", test.body, r.status)
		}
	}
	body := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<15))
	r := invocation{args: []string{"sign", "--secret", secret}, stdin: body}.run(t)
	if !signedBySpec(secret, []byte(body), http.Header{"X-Service-Signature": {strings.TrimSpace(r.out)}}) {
		t.Errorf("sign of a long body prints %q", r.out)
	}
}

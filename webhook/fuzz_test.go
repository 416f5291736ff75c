package webhook_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/webhook"
)

// FuzzVerify checks that Verify accepts a request if and only if it has one signature header with
// exactly the output of Sign.
func FuzzVerify(f *testing.F) {
	for _, vec := range vectors(f) {
		if len(vec.Body) < 4096 && len(vec.Secrets) > 0 {
			values := vec.Header.Values(webhook.SignatureHeader)
			both := append(slices.Clone(values), "", "")
			f.Add(vec.Secrets[0], vec.Body, both[0], both[1], len(values))
		}
	}
	f.Fuzz(func(t *testing.T, key string, content []byte, first, second string, n int) {
		v, err := webhook.NewVerifier([]string{key}, nil)
		if empty := len(bytes.Trim([]byte(key), "\x00")) == 0; empty != (err != nil) {
			t.Fatalf("NewVerifier(%q): %v", key, err)
		}
		if err != nil {
			return
		}
		right := webhook.Sign([]byte(key), content)
		given := []string{first, second}[:max(0, min(n, 2))]
		for _, values := range [][]string{{right}, {right, right}, given} {
			h := http.Header{"X-Service-Signature": values}
			d, err := v.Verify(content, h)
			if want := len(values) == 1 && values[0] == right; want != (err == nil) {
				t.Fatalf("Verify with %q: %v", values, err)
			}
			if err == nil && !bytes.Equal(d.Body, content) {
				t.Fatal("the delivery has another body")
			}
		}
	})
}

// FuzzParseEvent checks that ParseEvent agrees with the event of Verify, and that events
// round-trip.
func FuzzParseEvent(f *testing.F) {
	for _, name := range []string{"documented", "response.updated", "file.uploaded", "signature.completed", "truncated", "test"} {
		f.Add(payload(f, name))
	}
	f.Add([]byte(`{"event":"a","Event":"b","ID":"c","id":"d"}`))
	f.Add([]byte(`{"event":"\ud800","data":{"response":{"responses":{"\ufffd":{},"` + "\xff" + `":null}}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		e, err := webhook.ParseEvent(content)
		if err != nil {
			return
		}
		v := newVerifier(t, nil, secret)
		d, err := v.Verify(content, signed(secret, string(content)))
		if err != nil {
			t.Fatal(err)
		}
		if d.Event != e.Type || d.EventID != e.ID {
			t.Fatalf("Verify says %q %q, ParseEvent %q %q", d.Event, d.EventID, e.Type, e.ID)
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := webhook.ParseEvent(written)
		if err != nil {
			t.Fatal(err)
		}
		if rewritten, err := json.Marshal(again); err != nil || !bytes.Equal(rewritten, written) {
			t.Fatalf("got %s, %v, want %s", rewritten, err, written)
		}
	})
}

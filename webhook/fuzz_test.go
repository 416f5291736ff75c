package webhook_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/formsvc/toolkit/webhook"
)

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
		d := must(v.Verify(content, signed(secret, string(content))))
		if d.Event != e.Type || d.EventID != e.ID {
			t.Fatalf("Verify says %q %q, ParseEvent %q %q", d.Event, d.EventID, e.Type, e.ID)
		}
		written := must(json.Marshal(e))
		again := must(webhook.ParseEvent(written))
		if rewritten, err := json.Marshal(again); err != nil || !bytes.Equal(rewritten, written) {
			t.Fatalf("got %s, %v, want %s", rewritten, err, written)
		}
	})
}

package process

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/webhook"
)

// TestReceiverCountsBadRequests sends a good request twice and then bad ones.
func TestReceiverCountsBadRequests(t *testing.T) {
	t.Parallel()
	ctx, began := t.Context(), time.Now()
	w, ready, err := newReceiver(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	body := []byte(`{"email":"respondent.0000042@example.com"}`)
	post := func(id string, body []byte, change func(http.Header)) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, ready.Addr+"/3", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(webhook.DeliveryHeader, id)
		req.Header.Set(webhook.SignatureHeader, webhook.Sign([]byte(worker.Secret), body))
		webhook.SetStandard(req.Header, "e", time.Now(), body, []byte(worker.Secret))
		change(req.Header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	asItIs := func(http.Header) {}
	post("a", body, asItIs)
	post("a", body, asItIs)
	post("b", body, func(h http.Header) { h.Del(webhook.StandardSignatureHeader) })
	post("c", body, func(h http.Header) { h.Set(webhook.SignatureHeader, "no") })
	post("d", body, func(h http.Header) { h.Set(webhook.StandardSignatureHeader, "v1,no") })
	post("", body, asItIs)
	post("e", []byte("no number"), asItIs)
	if _, err := w.Do(ctx, worker.Command{Do: worker.Wait, N: 2, Endpoints: 4, Timeout: time.Minute}); err != nil {
		t.Error(err)
	}
	if _, err := w.Do(ctx, worker.Command{Do: worker.Wait, N: 1, Endpoints: 3, Timeout: time.Millisecond}); err == nil {
		t.Error("deliveries to another endpoint count")
	}
	r, err := w.Do(ctx, worker.Command{Do: worker.Arrivals})
	if err != nil || r.N != 2 || r.Requests != 7 || r.Bad != 4 {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, a := range r.Arrivals {
		if a.Number != 42 || a.Endpoint != 3 || a.At < began.UnixNano() || a.At > time.Now().UnixNano() {
			t.Errorf("got %+v", a)
		}
	}
	was, err := w.Do(ctx, worker.Command{Do: worker.Reset})
	if after, _ := w.Do(ctx, worker.Command{Do: worker.Arrivals}); err != nil || was.N != 2 || after.N != 0 || after.Bad != 0 {
		t.Errorf("got %+v, then %+v, %v", was, after, err)
	}
}

// TestHostileReceivers checks that each kind does what its name says.
func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, ready, err := newHostile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	// The minimum number of bytes, and a part of them.
	kinds := map[string]struct {
		bytes int
		text  string
	}{
		"trickle": {60, "HTTP/1.1 200 OK"}, "endless": {1 << 20, "junkjunk"}, "gzip bomb": {64 << 10, "gzip"},
		"headers": {100 << 10, "X-Long"}, "1xx storm": {100 << 10, "103 Early"}, "reset": {0, ""}, HangKind: {0, ""},
	}
	if len(ready.Addrs) != len(kinds) || len(kinds) != len(HostileKinds()) {
		t.Fatalf("got %v", ready.Addrs)
	}
	for kind, want := range kinds {
		conn, err := loadgen.Dial(ctx, strings.TrimPrefix(ready.Addrs[kind], "http://"), time.Now().Add(time.Minute), loadgen.Most)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte("POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"))
		if kind == HangKind { // a response would likely arrive in that time
			if err := conn.SetDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, max(want.bytes, 1))
		n, err := io.ReadFull(conn, got)
		_ = conn.Close()
		if n < want.bytes || !strings.Contains(string(got[:n]), want.text) {
			t.Errorf("%s: got %d bytes, %.80q, %v", kind, n, got[:n], err)
		}
		if silent := want.bytes == 0; silent && (n > 0 || os.IsTimeout(err) != (kind == HangKind)) {
			t.Errorf("%s: got %q, %v", kind, got[:n], err)
		}
	}
}

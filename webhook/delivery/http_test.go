package delivery_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// deliver makes one attempt at a server and returns the recorded attempt.
func deliver(t *testing.T, url string, opts delivery.Options) delivery.Attempt {
	t.Helper()
	q := newQueue()
	q.add("d1", delivery.Endpoint{ID: "a", URL: url, Secret: "secret"}, "body")
	n, err := newEngine(t, q, opts).RunOnce(t.Context())
	if n != 1 || err != nil {
		t.Fatalf("RunOnce: %d, %v", n, err)
	}
	r := q.get("d1")
	equal(t, r.result == delivery.Delivered, r.attempts[0].Error == "", "result %v with class %q: %t", r.result, r.attempts[0].Error)
	return r.attempts[0]
}

// Authentication 5 of the documentation, verified with the receiver kit.
func TestRequestIsSigned(t *testing.T) {
	const secret, body = "a secret of the webhook", "{\"event\": \"response.created\",\n \"id\": \"ev1\", \"x\": \"\\u00e9é\"}"
	verifier, err := webhook.NewVerifier([]string{secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got webhook.Delivery
	var head *http.Request
	server := httptest.NewServer(verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = webhook.FromContext(r.Context())
		head = r
	})))
	defer server.Close()
	q := newQueue()
	q.add("d1", delivery.Endpoint{ID: "a", URL: server.URL + "/hook?x=1", Secret: secret}, body)
	now := time.Now()
	if n, err := newEngine(t, q, delivery.Options{Now: func() time.Time { return now }}).RunOnce(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if head == nil {
		t.Fatalf("not verified: %+v", q.get("d1").attempts)
	}
	if string(got.Body) != body || got.ID != "d1" || got.Attempt != 1 || got.EventID != "ev1" {
		t.Errorf("delivery %+v", got)
	}
	want := http.Header{
		"Content-Length":      {fmt.Sprint(len(body))},
		"Content-Type":        {"application/json"},
		"User-Agent":          {"formsvc-webhooks/1"},
		"X-Service-Signature": {sign(secret, body)},
		"X-Service-Event":     {"response.created"},
		"X-Service-Delivery":  {"d1"},
		"X-Service-Attempt":   {"1"},
		"Idempotency-Key":     {"d1"},
		"Webhook-Id":          {"event-d1"},
		"Webhook-Timestamp":   {fmt.Sprint(now.Unix())},
		"Webhook-Signature":   {signStandard(secret, "event-d1", now, body)},
	}
	for name := range head.Header {
		if !slices.Equal(head.Header[name], want[name]) {
			t.Errorf("header %s: %q, want %q", name, head.Header[name], want[name])
		}
	}
	if len(head.Header) != len(want) || head.Method != "POST" || head.RequestURI != "/hook?x=1" {
		t.Errorf("%s %s %v", head.Method, head.RequestURI, head.Header)
	}
}

func TestStatusDecidesTheOutcome(t *testing.T) {
	var followed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err != nil {
			followed.Store(true)
			return
		}
		w.Header().Set("Location", "/followed")
		w.WriteHeader(status)
	}))
	defer server.Close()
	for status, class := range map[int]string{
		200: "", 201: "", 202: "", 204: "", 299: "",
		300: "redirect", 301: "redirect", 302: "redirect", 303: "redirect", 304: "redirect", 307: "redirect", 308: "redirect",
		400: "status", 404: "status", 410: "status", 429: "status", 500: "status", 503: "status", 599: "status",
	} {
		a := deliver(t, fmt.Sprint(server.URL, "/", status), delivery.Options{})
		if a.Error != class || a.Status != status {
			t.Errorf("%d: %+v", status, a)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}

func TestKeptResponseIsLimited(t *testing.T) {
	line := strings.Repeat("0123456789abcde\n", 64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Endless: it ends only when the sender closes the connection.
		for {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	a := deliver(t, server.URL, delivery.Options{})
	if a.Error != "" || len(a.Answer) != 4<<10 || !strings.HasPrefix(string(a.Answer), line) {
		t.Errorf("class %q, %d bytes kept", a.Error, len(a.Answer))
	}
}

func TestCompressedResponseIsNotExpanded(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		equal(t, r.Header.Get("Accept-Encoding"), "", "asked for a compressed answer: %v")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	defer server.Close()
	if a := deliver(t, server.URL, delivery.Options{}); !bytes.Equal(a.Answer, packed.Bytes()) {
		t.Errorf("kept %d bytes of %d", len(a.Answer), packed.Len())
	}
}

// countConns counts the connections that a server accepts.
func countConns(server *httptest.Server) *atomic.Int32 {
	var n atomic.Int32
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
	return &n
}

func TestConnectionsAreReused(t *testing.T) {
	for name, tt := range map[string]struct {
		answer int // bytes
		conns  int32
	}{
		"empty answer":       {0, 1},
		"short answer":       {10 << 10, 1},
		"answer is not read": {1 << 20, 20},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write(make([]byte, tt.answer))
			}))
			conns := countConns(server)
			server.Start()
			defer server.Close()
			q := newQueue()
			for i := range 20 {
				q.add(fmt.Sprint("d", i), delivery.Endpoint{ID: "a", URL: server.URL, Secret: "s"}, "body")
			}
			engine := newEngine(t, q, delivery.Options{Concurrency: 1})
			if n, err := engine.RunOnce(t.Context()); n != 20 || err != nil {
				t.Fatal(n, err)
			}
			if n := conns.Load(); n != tt.conns || q.count(delivery.Delivered) != 20 {
				t.Errorf("%d connections, %d delivered", n, q.count(delivery.Delivered))
			}
		})
	}
}

// A receiver may close a connection just when it is reused.
func TestStaleConnectionCostsNoAttempt(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	q := newQueue()
	for _, id := range []string{"d1", "d2"} {
		q.add(id, delivery.Endpoint{ID: "a", URL: server.URL, Secret: "s"}, "body")
	}
	engine := newEngine(t, q, delivery.Options{Concurrency: 1})
	if n, err := engine.RunOnce(t.Context()); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if q.count(delivery.Delivered) != 2 || requests.Load() != 3 {
		t.Errorf("%d delivered with %d requests", q.count(delivery.Delivered), requests.Load())
	}
}

func TestNetworkFailures(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = quiet
	closed := httptest.NewServer(nil)
	closed.Close()
	raw := func(reply string) string { return rawServer(t, reply) }
	tests := []struct{ name, url, class string }{
		{"untrusted certificate", secure.URL, delivery.ClassTLS},
		{"TLS without TLS", strings.Replace(raw("HTTP/1.1 400 Bad Request\r\n\r\n"), "http", "https", 1), delivery.ClassTLS},
		{"nobody listens", closed.URL, delivery.ClassConnect},
		{"closed without an answer", raw(""), delivery.ClassReset},
		{"closed within the answer", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), delivery.ClassReset},
		{"not HTTP", raw("220 mail.example ESMTP\r\n"), delivery.ClassTransport},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if a := deliver(t, tt.url, delivery.Options{}); a.Error != tt.class {
				t.Errorf("attempt %+v, want class %s", a, tt.class)
			}
		})
	}
}

// By default requests are sent only to public addresses.
func TestAddressesAreCheckedByDefault(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	conns := countConns(server)
	server.Start()
	defer server.Close()
	q := newQueue()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for i, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		q.add(fmt.Sprint("d", i), delivery.Endpoint{ID: fmt.Sprint("e", i), URL: "http://" + host + ":" + port, Secret: "s"}, "body")
	}
	engine, err := delivery.New(q, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := engine.RunOnce(t.Context()); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	for i := range 5 {
		if a := q.get(fmt.Sprint("d", i)).attempts[0]; a.Error != delivery.ClassRefused {
			t.Errorf("%d: %+v", i, a)
		}
	}
	equal(t, conns.Load(), 0, "%d connections")
}

// Run closes its connections, and can be called again.
func TestRunLeavesNoConnections(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	conns := countConns(server)
	server.Start()
	q := newQueue()
	engine := newEngine(t, q, delivery.Options{PollInterval: time.Hour})
	for i := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- engine.Run(ctx) }()
		q.add(fmt.Sprint("d", i), delivery.Endpoint{ID: "a", URL: server.URL, Secret: "s"}, "body")
		for q.count(delivery.Delivered) != i+1 {
			runtime.Gosched()
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	equal(t, conns.Load(), 2, "%d connections for two runs")
	// Close waits until the server's connections are idle or closed.
	server.Close()
}

package delivery

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// It checks properties that need a trusted certificate or a network from outside.
func TestDefaultTransport(t *testing.T) {
	o, err := withDefaults(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := newTransport(&o)
	if tr.Proxy != nil {
		t.Error("a proxy gets around Control")
	}
	if tr.TLSClientConfig.MinVersion < tls.VersionTLS12 || tr.TLSClientConfig.InsecureSkipVerify {
		t.Error("TLS is weak")
	}
	if tr.MaxIdleConnsPerHost < o.PerEndpoint || tr.IdleConnTimeout <= 0 || tr.TLSHandshakeTimeout <= 0 {
		t.Error("idle connections are too few or never closed")
	}
}

// speakHTTP2 starts a server and returns an engine that trusts it.
func speakHTTP2(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *Engine) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	o, err := withDefaults(&Options{Control: func(string, string, syscall.RawConn) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	tr := newTransport(&o)
	tr.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	t.Cleanup(tr.CloseIdleConnections)
	return server, &Engine{opts: o, transport: tr}
}

func TestDefaultTransportSpeaksHTTP2(t *testing.T) {
	server, e := speakHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	})
	j := &job{claim: Claim{ID: "d1"}, endpoint: Endpoint{URL: server.URL, Secret: "s"}, body: []byte("body")}
	status, answer, err := e.exchange(t.Context(), j, 1, time.Now())
	if status != 200 || string(answer) != "HTTP/2.0" || err != nil {
		t.Errorf("%d %q %v", status, answer, err)
	}
}

// The unread data of an HTTP/2 receiver is limited.
func TestHTTP2ReceiverCannotFillMemory(t *testing.T) {
	sent := make(chan int, 1)
	server, e := speakHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
		total := 0
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
		for {
			n, err := w.Write(make([]byte, 4<<10))
			if total += n; err != nil {
				sent <- total
				return
			}
		}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n := <-sent; n < 4<<10 || n > 128<<10 {
		t.Errorf("%d bytes sent unread", n)
	}
}

func TestHTTP2HostileReceivers(t *testing.T) {
	server, e := speakHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/headers":
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
		case "/1xx":
			w.Header().Set("X", strings.Repeat("x", 100))
			for range 10_000 {
				w.WriteHeader(http.StatusEarlyHints)
			}
		case "/body":
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 4<<10))
			}
		}
	})
	for path, want := range map[string]string{"/headers": ClassTransport, "/1xx": ClassTransport, "/body": ""} {
		j := &job{claim: Claim{ID: "d1"}, endpoint: Endpoint{URL: server.URL + path, Secret: "s"}, body: []byte("body")}
		status, answer, err := e.exchange(t.Context(), j, 1, time.Now())
		if class := classify(t.Context(), status, err); class != want || len(answer) > 4<<10 {
			t.Errorf("%s: class %q, want %q; %v", path, class, want, err)
		}
	}
}

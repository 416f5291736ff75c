//go:build long

package httpx_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// An export may take longer than the server's timeouts while the client goes on reading. A client that stops is
// disconnected.
func TestSlowExports(t *testing.T) {
	for _, kind := range []string{".ndjson", ".csv"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, openMemory(t), nil)
			campaign := w.campaign(plainCampaign)
			w.fill(campaign, 100, 10_000)
			path := campaign + "/responses" + kind
			w.steadily(path, w.do("GET", path, "").is(200, "").body)
			w.stalled(path)
		})
	}
}

func (w *world) steadily(path, whole string) {
	w.tb.Helper()
	w.store.pages = func() error { // finding the columns alone takes longer
		time.Sleep(100 * time.Millisecond)
		return nil
	}
	w.grace(10 * time.Second)
	server := httptest.NewUnstartedServer(w.api)
	server.Config.WriteTimeout = 200 * time.Millisecond
	server.Config.ConnContext = smallBuffers
	server.Start()
	defer server.Close()
	body := w.slowly(server, path, 64<<10)
	got := &strings.Builder{}
	for buffer := make([]byte, 64<<10); ; time.Sleep(20 * time.Millisecond) {
		n, err := io.ReadFull(body, buffer)
		got.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	if got.String() != whole {
		w.tb.Errorf("%d bytes, want %d", got.Len(), len(whole))
	}
	w.store.pages = nil
}

func (w *world) stalled(path string) {
	w.tb.Helper()
	w.grace(100 * time.Millisecond)
	server := httptest.NewUnstartedServer(w.api)
	left := make(chan struct{}, 10)
	server.Config.ConnContext = tinyBuffers
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			left <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	body := w.slowly(server, path, 8<<10)
	select {
	case <-left:
	case <-time.After(patience):
		w.tb.Fatal("the connection stays open")
	}
	if n, err := io.Copy(io.Discard, body); err == nil {
		w.tb.Errorf("%d bytes with a clean end", n)
	}
}

// A client that stops is disconnected.
func TestStalledClientsAreDisconnected(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.grace(100 * time.Millisecond)
	list := w.uploads()
	server := httptest.NewUnstartedServer(w.api)
	closed := make(chan struct{}, 10)
	server.Config.ConnContext = smallBuffers
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	for _, request := range []string{
		w.head(list, "Content-Disposition: attachment", "Content-Length: 100") + "\r\n12345",
		w.head(list, formType, "Content-Length: 500") + "\r\n" + formOf(filePart("x"))[:50],
		w.head(list, formType, "Content-Length: 500") + "\r\n" + formOf(filePart("x")), // the epilogue is missing
	} {
		answer := exchange(t, server.Listener.Addr().String(), request, false)
		if !strings.HasPrefix(answer, "HTTP/1.1 408") || !strings.Contains(answer, "body_timeout") {
			t.Errorf("%s", answer)
		}
		wait(t, closed)
	}
	w.isEmpty(list)

	file := w.upload(noise(maxFile))
	conn, in := dial(t, server)
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	_, _ = io.WriteString(conn, strings.Replace(w.head(file), "POST", "GET", 1)+"\r\n")
	wait(t, closed)
	if response, err := http.ReadResponse(in, nil); err == nil {
		if n, err := io.Copy(io.Discard, response.Body); err == nil {
			t.Errorf("%d bytes with a clean end", n)
		}
	}
}

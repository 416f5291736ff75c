//go:build long

package httpx_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A client that stops is disconnected.
func TestStalledClientsAreDisconnected(t *testing.T) {
	w := newWorld(t, nil)
	w.bare.SetGrace(100 * time.Millisecond)
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
		answer := exchange(t, server, request, false)
		if !strings.HasPrefix(answer, "HTTP/1.1 408") || !strings.Contains(answer, "body_timeout") {
			t.Errorf("%s", answer)
		}
		<-closed
	}
	w.isEmpty(list)

	file := w.upload(noise(maxFile))
	conn := dial(t, server, "")
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	_, _ = io.WriteString(conn, strings.Replace(w.head(file), "POST", "GET", 1)+"\r\n")
	<-closed
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
		if n, err := io.Copy(io.Discard, response.Body); err == nil {
			t.Errorf("%d bytes with a clean end", n)
		}
	}
}

// A client that reads what the kernel has buffered counts as active, although the server can send nothing meanwhile.
func TestDownloadMayPauseWhileBuffersDrain(t *testing.T) {
	w := largeFiles(t)
	list := w.uploads()
	upload := w.request("POST", list, "")
	largeBody(upload, "", "")
	file := w.send(upload).is(201, "").header.Get("Location")
	w.bare.SetGrace(100 * time.Millisecond)
	server := httptest.NewServer(w.api)
	defer server.Close()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+file, nil))
	r.Header.Set("Authorization", "Bearer "+w.mine.key)
	response := must(server.Client().Do(r))
	defer func() { _ = response.Body.Close() }()
	n := must(io.CopyN(io.Discard, response.Body, 1<<20))
	time.Sleep(time.Second) // ten times the grace
	rest, err := io.Copy(io.Discard, response.Body)
	if n += rest; n != formsvc.DefaultMaxFile || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// smallBuffers keeps the kernel from buffering a whole file.
func smallBuffers(ctx context.Context, conn net.Conn) context.Context {
	_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
	return ctx
}

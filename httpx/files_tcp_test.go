package httpx_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/httpx"
)

// patience ends tests that hang.
const patience = 2 * time.Minute

// head returns the header of an upload up to its framing.
func (w *world) head(path string, lines ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.mine.key + "\r\n" +
		strings.Join(append(lines, ""), "\r\n")
}

const formType = "Content-Type: multipart/form-data; boundary=" + boundary

// C4, G6: a cut upload leaves nothing behind, wherever it is cut.
func TestCutUploadLeavesNothing(t *testing.T) {
	w := newWorld(t, nil)
	list := w.uploads()
	server := httptest.NewServer(w.api)
	defer server.Close()
	content := noise(200_000)
	form := formOf(filePart(content), part("module", "cv"))
	chunks := fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 100_000, form[:100_000], len(form)-100_000, form[100_000:])
	length := func(s string) string { return fmt.Sprintf("Content-Length: %d", len(s)) }
	const raw = "Content-Disposition: attachment; filename=a"
	for _, row := range []struct{ what, head, body string }{
		{"raw", w.head(list, raw, length(content)), content},
		{"form", w.head(list, formType, length(form)), form},
		{"form in chunks", w.head(list, formType, "Transfer-Encoding: chunked"), chunks},
	} {
		var places []int
		for at := 0; at < len(row.body); at += 32 << 10 {
			places = append(places, at)
		}
		for back := 1; back <= 7; back++ {
			places = append(places, len(row.body)-back, len(row.body)-back*40)
		}
		for _, at := range places {
			request := row.head + "\r\n" + row.body[:at]
			answer := exchange(t, server, request, true)
			if !strings.HasPrefix(answer, "HTTP/1.1 400") || !strings.Contains(answer, "body_incomplete") ||
				!strings.Contains(answer, "Connection: close") {
				t.Errorf("%s cut at %d: %s", row.what, at, answer)
			}
			_ = dial(t, server, request).Close()
		}
	}
	server.Close() // waits for all requests
	w.isEmpty(list)
}

// One connection serves all requests. No deadline of one request affects the next, however long the pause.
func TestConnectionsAreReused(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.bare.SetGrace(time.Second)
				server := httptest.NewUnstartedServer(w.api)
				server.Config.ReadTimeout, server.Config.WriteTimeout, server.Config.IdleTimeout = timeout, timeout, patience
				inside := overPipes(server)
				server.Start()
				defer server.Close()
				inside.use(server)
				w.useAgain(server)
			})
		})
	}
}

func (w *world) useAgain(server *httptest.Server) {
	w.tb.Helper()
	fresh := 0
	traced := func(r *http.Request) {
		*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			if !info.Reused {
				fresh++
			}
		}}))
	}
	content, list := noise(maxFile), w.uploads()
	file := w.upload(content)
	send := func(method, path, body string, status int, edit func(*http.Request)) {
		w.tb.Helper()
		got, text, err := w.over(server, method, path, strings.NewReader(body), traced, edit)
		if err != nil || got != status || method == "GET" && status == 200 && text != content {
			w.tb.Fatalf("%s %s: %d, %v, %d bytes", method, path, got, err, len(text))
		}
	}
	plainly := without("X")
	send("POST", list, content, 201, named("attachment"))
	send("POST", list, "", 201, named("attachment"))
	send("POST", list, formOf(filePart(content))+"epilogue", 201, asForm)
	time.Sleep(1500 * time.Millisecond) // longer than every deadline
	send("GET", file, "", 200, plainly)
	send("HEAD", file, "", 200, plainly)
	send("GET", file, "", 304, header("If-None-Match", "*"))
	send("GET", file, "", 416, header("Range", "bytes=-0"))
	send("GET", file, "", 206, header("Range", "bytes=0-0,5-6"))
	time.Sleep(1500 * time.Millisecond)
	send("POST", list, content, 201, named("attachment"))
	equal(w.tb, fresh, 1, "%d connections")
}

// A slow but steady client may exceed the server's timeouts, in both directions.
func TestSteadyClientsMayExceedTimeouts(t *testing.T) {
	for _, row := range []struct {
		protocol string
		http2    bool
	}{{"HTTP/1", false}, {"HTTP/2", true}} {
		t.Run(row.protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.bare.SetGrace(10 * time.Second)
				server := httptest.NewUnstartedServer(w.api)
				server.Config.ReadTimeout, server.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
				server.EnableHTTP2 = row.http2
				inside := overPipes(server)
				server.StartTLS()
				defer server.Close()
				inside.use(server).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
				w.steady(server, row.http2)
			})
		})
	}
}

func (w *world) steady(server *httptest.Server, http2 bool) {
	w.tb.Helper()
	list, file := w.uploads(), w.upload(noise(maxFile))
	const pause = 25 * time.Millisecond
	form, in := io.Pipe()
	go func() {
		for text := formOf(filePart(noise(20_000))); text != ""; time.Sleep(pause) {
			n := min(len(text), 1000)
			_, _ = io.WriteString(in, text[:n])
			text = text[n:]
		}
		_ = in.Close()
	}()
	if status, _, err := w.over(server, "POST", list, form, asForm); status != 201 {
		w.tb.Errorf("upload: %d, %v", status, err)
	}

	campaign := w.campaign(plainCampaign)
	w.fill(campaign, 100, 10_000)
	paths := []string{file, campaign + "/responses.csv", campaign + "/responses.ndjson"}
	if http2 { // whose WriteTimeout also ends a stream that waits for the store
		paths = paths[:1]
	}
	for _, path := range paths {
		want := w.do("GET", path, "").is(200, "").body
		w.store.pages = func() error { // finding the columns of an export alone takes longer
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		response, err := server.Client().Do(w.request("GET", server.URL+path, "", func(r *http.Request) { r.RequestURI = "" }))
		noError(w.tb, err)
		var got bytes.Buffer
		for buffer := make([]byte, 32<<10); err == nil; time.Sleep(pause) {
			var n int
			n, err = io.ReadFull(response.Body, buffer)
			got.Write(buffer[:n])
		}
		if _ = response.Body.Close(); got.String() != want {
			w.tb.Errorf("%s: %d of %d bytes, %v", path, got.Len(), len(want), err)
		}
		w.store.pages = nil
	}
}

// Slow storage after the end of the body doesn't count as the client's delay.
func TestSlowStorageDoesNotTimeOutUploads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.bare.SetGrace(50 * time.Millisecond)
		list := w.uploads()
		w.blobs.stored = func(ctx context.Context) error {
			time.Sleep(300 * time.Millisecond) // longer than every deadline
			return ctx.Err()
		}
		server := httptest.NewUnstartedServer(w.api)
		server.Config.WriteTimeout = 100 * time.Millisecond
		inside := overPipes(server)
		server.Start()
		defer server.Close()
		for _, content := range []string{"", "content"} {
			conn := must(inside.dial(t.Context(), "", ""))
			length := fmt.Sprintf("Content-Length: %d", len(content))
			_, _ = io.WriteString(conn, w.head(list, "Content-Disposition: attachment", length)+"\r\n"+content)
			if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != 201 {
				t.Errorf("%q: %v, %v", content, response, err)
			}
			_ = conn.Close()
		}
	})
}

// dial connects to a server and sends the beginning of a request.
func dial(t *testing.T, server *httptest.Server, request string) net.Conn {
	t.Helper()
	conn := must(net.Dial("tcp", server.Listener.Addr().String()))
	t.Cleanup(func() { _ = conn.Close() })
	noError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, _ = io.WriteString(conn, request) // the server may have replied and left
	return conn
}

// exchange sends the bytes, closes its side if end is true, and returns the reply.
func exchange(t *testing.T, server *httptest.Server, request string, end bool) string {
	t.Helper()
	conn := dial(t, server, request)
	if c, ok := conn.(*net.TCPConn); ok && end {
		_ = c.CloseWrite()
	}
	answer, _ := io.ReadAll(conn)
	_ = conn.Close()
	return string(answer)
}

// Transfers beyond the limit are refused and leave nothing behind; others succeed.
func TestMaxTransfers(t *testing.T) {
	w := newWorld(t, nil)
	w.bare.SetLimits(func(l *httpx.Limits) { l.Transfers = 1 })
	location := w.upload("first")
	list := w.uploads()
	during := 0
	w.blobs.stored = func(context.Context) error {
		w.blobs.stored = nil
		during++
		w.do("POST", list, formOf(filePart("third")), asForm).is(503, "too_many_transfers").wantHeader("Retry-After", "1")
		w.do("GET", location, "").is(503, "too_many_transfers")
		w.do("GET", list, "").is(200, "")
		return nil
	}
	w.do("POST", list, formOf(filePart("second")), asForm).is(201, "")
	if got := w.do("GET", location, "").is(200, "").body; got != "first" || during != 1 {
		t.Errorf("afterwards %q; %d uploads were watched", got, during)
	}
	if n := w.total(list); n != 1 || w.blobCount() != 2 {
		t.Errorf("%d files, %d blobs", n, w.blobCount())
	}
	// Failed transfers free their slot too.
	for range 3 {
		w.do("POST", list, "x", asForm).is(400, "multipart_incomplete")
	}
	w.upload("last")
}

// An upload holds a slot for requests while it looks up its response, which may have megabytes.
func TestUploadLooksUpItsResponseInASlot(t *testing.T) {
	w := newWorld(t, nil)
	w.oneSlot()
	list, looked := w.uploads(), false
	w.store.hold.Store(new(func() {
		looked = true
		w.do("GET", strings.TrimSuffix(list, "/files"), "").is(503, "unavailable")
	}))
	w.do("POST", list, "x").is(201, "")
	if !looked {
		t.Error("no response was looked up")
	}
}

// A pipes is a listener whose connections stay in the process. With it a server can run in a bubble of
// testing/synctest, where time passes only while all goroutines wait: no deadline is missed because the machine is
// busy.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// overPipes makes a server listen on pipes. Call it before the server is started.
func overPipes(server *httptest.Server) *pipes {
	_ = server.Listener.Close()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server.Listener = p
	return p
}

// use makes the client of a started server connect through the pipes.
func (p *pipes) use(server *httptest.Server) *http.Transport {
	transport := server.Client().Transport.(*http.Transport)
	transport.DialContext = p.dial
	return transport
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	server, client := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

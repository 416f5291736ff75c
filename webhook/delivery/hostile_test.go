//go:build long

package delivery_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// after returns a script that reads the request, sends head, and then sends part repeatedly with
// pauses until that fails.
func after(head, part string, pause time.Duration) script {
	return func(conn net.Conn, r *bufio.Reader) {
		if !readRequest(r) {
			return
		}
		_, err := io.WriteString(conn, head)
		for err == nil && part != "" {
			_, err = io.WriteString(conn, part)
			time.Sleep(pause)
		}
		_, _ = io.Copy(io.Discard, r)
	}
}

// reset resets the connection after sending head.
func reset(head string) script {
	return func(conn net.Conn, r *bufio.Reader) {
		readRequest(r)
		_, _ = io.WriteString(conn, head)
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
}

// silent neither reads nor writes.
func silent(conn net.Conn, _ *bufio.Reader) {
	for {
		if _, err := conn.Write(nil); err != nil {
			return // the test has ended
		}
		time.Sleep(10 * time.Millisecond)
	}
}

const good = "HTTP/1.1 200 OK\r\n"

// hostile has hostile receivers and the attempt to be recorded.
var hostile = []struct {
	name   string
	do     script
	class  string
	status int
	kept   int // bytes; -1: some
}{
	{"accepts and hangs", after("", "", 0), delivery.ClassTimeout, 0, 0},
	{"reads nothing", silent, delivery.ClassTimeout, 0, 0},
	{"trickles the status line", after("", "H", 20*time.Millisecond), delivery.ClassTimeout, 0, 0},
	{"trickles headers", after(good, "X: y\r\n", 20*time.Millisecond), delivery.ClassTimeout, 0, 0},
	{"trickles the body", after(good+"\r\n", ".", 20*time.Millisecond), delivery.ClassTimeout, 200, -1},
	{"trickles 1xx", after("", "HTTP/1.1 102 Processing\r\n\r\n", 20*time.Millisecond), delivery.ClassTimeout, 0, 0},
	{"trickles chunks", after(good+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n.\r\n", 20*time.Millisecond), delivery.ClassTimeout, 200, -1},
	{"never closes", after(good+"\r\nanswer", "", 0), delivery.ClassTimeout, 200, 6},
	{"less body than announced", after(good+"Content-Length: 9\r\n\r\nanswer", "", 0), delivery.ClassTimeout, 200, 6},
	{"endless body", after(good+"\r\n", strings.Repeat("x", 32<<10), 0), "", 200, 4 << 10},
	{"endless chunk", after(good+"Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n", strings.Repeat("x", 32<<10), 0), "", 200, 4 << 10},
	{"endless body of an error", after("HTTP/1.1 500 No\r\n\r\n", strings.Repeat("x", 32<<10), 0), delivery.ClassStatus, 500, 4 << 10},
	{"a terabyte announced", after(good+"Content-Length: 1099511627776\r\n\r\n", strings.Repeat("x", 32<<10), 0), "", 200, 4 << 10},
	{"100 KiB of headers", after(good, "X: "+strings.Repeat("x", 1000)+"\r\n", 0), delivery.ClassTransport, 0, 0},
	{"one endless header", after(good+"X: ", strings.Repeat("x", 1000), 0), delivery.ClassTransport, 0, 0},
	{"endless empty headers", after(good, "a:\r\n", 0), delivery.ClassTransport, 0, 0},
	{"endless status line", after("", "HTTP", 0), delivery.ClassTransport, 0, 0},
	{"storm of 1xx", after("", "HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n", 0), delivery.ClassTransport, 0, 0},
	{"storm of 100", after("", "HTTP/1.1 100 Continue\r\n\r\n", 0), delivery.ClassTransport, 0, 0},
	{"endless chunk extension", after(good+"Transfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("x", 1000), 0), delivery.ClassTransport, 200, 0},
	{"endless trailer", after(good+"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n", "X: "+strings.Repeat("x", 1000)+"\r\n", 0),
		delivery.ClassTransport, 200, 0},
	{"negative length", after(good+"Content-Length: -1\r\n\r\n", "", 0), delivery.ClassTransport, 0, 0},
	{"two lengths", after(good+"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "", 0), delivery.ClassTransport, 0, 0},
	{"unknown coding", after(good+"Transfer-Encoding: gzip\r\n\r\n", "", 0), delivery.ClassTransport, 0, 0},
	{"resets at once", reset(""), delivery.ClassReset, 0, 0},
	{"resets in the headers", reset(good + "X:"), delivery.ClassReset, 0, 0},
	{"resets in the body", reset(good + "Content-Length: 9\r\n\r\nanswer"), delivery.ClassReset, 200, -1},
}

// piped returns a transport like the engine's own, whose connections lead to the script within the
// process.
func piped(opts *delivery.Options, do script) http.RoundTripper {
	transport := delivery.NewTransport(opts)
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		server, client := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			do(server, bufio.NewReader(server))
		}()
		return client, nil
	}
	return transport
}

func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var a delivery.Attempt
			switch {
			case tt.class != delivery.ClassTimeout:
				a = deliver(t, scripted(t, tt.do), delivery.Options{})
			case tt.status == 0:
				a = deliver(t, scripted(t, tt.do), delivery.Options{Timeout: 300 * time.Millisecond})
			default: // the response headers must arrive in time
				synctest.Test(t, func(t *testing.T) {
					opts := delivery.Options{Timeout: 300 * time.Millisecond}
					opts.Transport = piped(&opts, tt.do)
					a = deliver(t, "http://receiver.example", opts)
					time.Sleep(time.Second) // until the script has ended
				})
			}
			if a.Error != tt.class || a.Status != tt.status && tt.name != "resets in the body" {
				t.Errorf("class %q, status %d; want %q, %d", a.Error, a.Status, tt.class, tt.status)
			}
			if n := len(a.Answer); tt.kept >= 0 && n != tt.kept || n > 4<<10 {
				t.Errorf("%d bytes kept, want %d", n, tt.kept)
			}
		})
	}
}

// An attempt whose payload the receiver doesn't read ends in time, too.
func TestReceiverThatDoesNotRead(t *testing.T) {
	t.Parallel()
	q := newQueue()
	q.add("d1", delivery.Endpoint{ID: "a", URL: scripted(t, silent), Secret: "secret"}, strings.Repeat("x", 32<<20))
	engine := newEngine(t, q, delivery.Options{Timeout: 300 * time.Millisecond})
	if n, err := engine.RunOnce(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if a := q.get("d1").attempts[0]; a.Error != delivery.ClassTimeout {
		t.Errorf("attempt %+v", a)
	}
}

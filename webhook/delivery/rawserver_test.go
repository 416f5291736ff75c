package delivery_test

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
)

var quiet = log.New(io.Discard, "", 0)

// A script is a receiver's handler of a connection. It may return at any time, and must return if
// writing fails; then the connection is closed.
type script func(conn net.Conn, r *bufio.Reader)

// scripted starts a server that runs the script for every connection, and returns its URL. At the
// end of the test its connections are closed.
func scripted(t *testing.T, do script) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				do(conn, bufio.NewReader(conn))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return "http://" + l.Addr().String()
}

// rawServer starts a server that sends the same bytes on every connection and closes it. It returns
// the server's URL.
func rawServer(t *testing.T, reply string) string {
	t.Helper()
	return scripted(t, func(conn net.Conn, r *bufio.Reader) {
		// Reading the whole request first prevents the kernel from resetting the connection before
		// the reply has arrived.
		if first, err := r.Peek(1); err == nil && first[0] != 'P' || readRequest(r) {
			_, _ = io.WriteString(conn, reply)
		}
	})
}

// readRequest reads a whole request and reports whether there was one.
func readRequest(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

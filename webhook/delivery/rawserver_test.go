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

// rawServer answers every connection with the same bytes and closes it. It
// returns the server's URL.
func rawServer(t *testing.T, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { serveRaw(conn, reply) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return "http://" + l.Addr().String()
}

func serveRaw(conn net.Conn, reply string) {
	defer func() { _ = conn.Close() }()
	// Reading the whole request first keeps the kernel from resetting the
	// connection with the reply still on its way.
	r := bufio.NewReader(conn)
	if first, err := r.Peek(1); err != nil || first[0] == 'P' {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
	}
	_, _ = io.WriteString(conn, reply)
}

package loadgen

import (
	"bytes"
	"net"
	"strings"
	"testing"
)

// TestAnswers feeds answers in pieces of every size.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" +
		"HTTP/1.1 204 No Content\r\nX: y\r\nContent-Length: 0\r\n\r\n" +
		"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\nC: d\r\n\r\nbye"
	wants := []struct {
		status int
		body   string
	}{{200, "hello"}, {204, ""}, {200, "bye"}}
	for size := 1; size <= len(text); size++ {
		a := NewAnswers(pieces(t, text, size))
		for _, want := range wants {
			if body, err := a.Next(want.status, true); err != nil || string(body) != want.body {
				t.Fatalf("in pieces of %d: got %q, %v", size, body, err)
			}
		}
		a = NewAnswers(pieces(t, text, size))
		for _, want := range wants {
			var body bytes.Buffer
			if n, err := a.Pour(want.status, &body); err != nil || body.String() != want.body || n != int64(body.Len()) {
				t.Fatalf("poured in pieces of %d: got %q, %d, %v", size, &body, n, err)
			}
		}
	}
}

func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nwhy?":                                     "answered 500, want 200: why?",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n":                                   "without Content-Length",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx":                               "EOF",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n":                           "a chunk of",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n":                  "after a chunk of 2",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n":               "after a chunk of 0",
		"HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nwh\r\n2\r\ny?\r\n0\r\n\r\n": "want 200: why?",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n":                                        "Content-Length",
		"SMTP\r\n\r\n": "not an answer",
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwh":                    "EOF",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Long: header\r\n", 3_000): "too long",
	} {
		if _, err := NewAnswers(pieces(t, text, 1_000)).Next(200, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}

// pieces returns a connection on which the text arrives in pieces.
func pieces(t *testing.T, text string, size int) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close() })
	go func() {
		defer func() { _ = there.Close() }()
		for len(text) > 0 {
			n := min(size, len(text))
			if _, err := there.Write([]byte(text[:n])); err != nil {
				return
			}
			text = text[n:]
		}
	}()
	return here
}

// TestChunks feeds chunks in pieces of every size, and an answer after them.
func TestChunks(t *testing.T) {
	t.Parallel()
	const text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nB\r\n, my friend\r\n0\r\n\r\n" +
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbye"
	for size := 1; size <= len(text); size++ {
		a := NewAnswers(pieces(t, text, size))
		for _, want := range []string{"hello, my friend", "bye"} {
			if body, err := a.Next(200, true); err != nil || string(body) != want {
				t.Fatalf("in pieces of %d: got %q, %v, want %q", size, body, err, want)
			}
		}
		a = NewAnswers(pieces(t, text, size))
		for range 2 {
			if body, err := a.Next(200, false); err != nil || len(body) > 0 {
				t.Fatalf("dropped in pieces of %d: got %q, %v", size, body, err)
			}
		}
		if _, err := NewAnswers(pieces(t, text, size)).Pour(200, &bytes.Buffer{}); err == nil {
			t.Fatal("a file of unknown length is taken")
		}
	}
}

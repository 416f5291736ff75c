package main

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, c := range []struct {
		samples []time.Duration
		p       int
		want    time.Duration
	}{
		{nil, 50, 0}, {hundred[:1], 50, 1}, {hundred[:1], 100, 1}, {hundred[:2], 50, 1}, {hundred[:3], 50, 2},
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred[:10], 99, 10},
	} {
		if got := percentile(c.samples, c.p); got != c.want {
			t.Errorf("percentile %d of %d samples is %d, want %d", c.p, len(c.samples), got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	s := newSpread([]float64{3, 1, 2})
	if s.text(1) != "2.0 (1.0–3.0)" || !slices.Equal(s.Rounds, []float64{3, 1, 2}) {
		t.Errorf("got %s of %v", s.text(1), s.Rounds)
	}
	if s := newSpread([]float64{1, 2}); s.Median != 1.5 {
		t.Errorf("the median of two is %v", s.Median)
	}
}

// TestGoal makes sure that a verdict goes by the number shown.
func TestGoal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goal  goal
		value float64
		want  bool
	}{
		{goal{Bound: 1, atLeast: true, decimals: 2}, 0.996, true},
		{goal{Bound: 1, atLeast: true, decimals: 2}, 0.994, false},
		{goal{Bound: 60}, 60.4, true},
		{goal{Bound: 60}, 60.6, false},
	} {
		s := newSpread([]float64{c.value})
		if got := c.goal.met(&s); got.Reached != c.want || !got.Measured {
			t.Errorf("%v of %v: reached is %v", c.value, c.goal.Bound, got.Reached)
		}
	}
}

func TestStoredIdentifiers(t *testing.T) {
	t.Parallel()
	last := ""
	for i := range 5_000 {
		id := string(storedID(i))
		if len(id) != 36 || id[14] != '7' || id[19] != '8' || id <= last {
			t.Fatalf("number %d: %s follows %s", i, id, last)
		}
		last = id
	}
	if a, b := storedReference(0), storedReference(1<<40-1); a != "22222-22222" || b != "YYYYY-YYYYY" {
		t.Errorf("got the references %s and %s", a, b)
	}
}

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
		a := newAnswers(pieces(t, text, size))
		for _, want := range wants {
			if body, err := a.next(want.status, true); err != nil || string(body) != want.body {
				t.Fatalf("in pieces of %d: got %q, %v", size, body, err)
			}
		}
		a = newAnswers(pieces(t, text, size))
		for _, want := range wants {
			var body bytes.Buffer
			if n, err := a.pour(want.status, &body); err != nil || body.String() != want.body || n != int64(body.Len()) {
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
		if _, err := newAnswers(pieces(t, text, 1_000)).next(200, false); err == nil || !strings.Contains(err.Error(), want) {
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
		a := newAnswers(pieces(t, text, size))
		for _, want := range []string{"hello, my friend", "bye"} {
			if body, err := a.next(200, true); err != nil || string(body) != want {
				t.Fatalf("in pieces of %d: got %q, %v, want %q", size, body, err, want)
			}
		}
		a = newAnswers(pieces(t, text, size))
		for range 2 {
			if body, err := a.next(200, false); err != nil || len(body) > 0 {
				t.Fatalf("dropped in pieces of %d: got %q, %v", size, body, err)
			}
		}
		if _, err := newAnswers(pieces(t, text, size)).pour(200, &bytes.Buffer{}); err == nil {
			t.Fatal("a file of unknown length is taken")
		}
	}
}

package loadgen

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestOpenLoop checks that requests come due at their rate, independent of the responses, and that latencies begin when
// they are due.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	const every, span = 2 * time.Millisecond, 400 * time.Millisecond
	begin := time.Now()
	l := &Load{Rate: float64(time.Second / every), End: begin.Add(span), due: make(chan time.Time, span/every+1)}
	l.pace() // nothing answers
	var first, want time.Time
	for due := range l.due {
		if first.IsZero() {
			first, want = due, due
		}
		if due.Sub(want).Abs() > time.Microsecond || due.Before(begin) || !due.Before(l.End) {
			t.Errorf("a request came due %v after the first, want %v", due.Sub(first), want.Sub(first))
		}
		want = want.Add(every)
	}
	if want.Before(l.End) {
		t.Errorf("none came due at %v, %v before the end", want, l.End.Sub(want))
	}

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	t.Cleanup(srv.Close)
	addr := srv.Listener.Addr().String()
	work := Workload{Status: http.StatusCreated, Requests: [][]byte{[]byte("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n")}}
	begin = time.Now()
	l = &Load{Workload: work, Addr: addr, Conns: 3, Rate: 500, Begin: begin, End: begin.Add(span)}
	s, err := l.run(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	// All due requests are answered, also after the end; on a busy machine pace began late.
	if s.Answered > int(span/every)+1 || len(s.Latencies) != s.Answered {
		t.Errorf("%d requests were answered and %d counted", s.Answered, len(s.Latencies))
	}

	late := time.Now().Add(-time.Second)
	l = &Load{Workload: work, Addr: addr, Conns: 1, End: time.Now().Add(time.Second), due: make(chan time.Time, 1)}
	l.due <- late
	close(l.due)
	s = Sample{}
	if err := l.work(t.Context(), 0, &s); err != nil || len(s.Latencies) != 1 || s.Latencies[0] < time.Second {
		t.Errorf("a request that was a second late took %v, %v", s.Latencies, err)
	}
	l.TooMuch, l.due = true, make(chan time.Time, 1)
	l.due <- late
	close(l.due)
	s = Sample{}
	if err := l.work(t.Context(), 0, &s); err != nil || s.Answered != 0 || s.Unsent != 1 {
		t.Errorf("a request that nobody waits for any more: %+v, %v", s, err)
	}
}

// TestTooMuchCountsRefusals checks that refusals are not goodput, and that other responses and broken connections only
// end a load without TooMuch.
func TestTooMuchCountsRefusals(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch count.Add(1) % 3 {
		case 0:
			w.WriteHeader(http.StatusCreated)
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(srv.Close)
	work := Workload{Status: http.StatusCreated, Requests: [][]byte{[]byte("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n")}}
	begin := time.Now()
	l := &Load{Workload: work, Addr: srv.Listener.Addr().String(), Conns: 2, Begin: begin, End: begin.Add(200 * time.Millisecond), TooMuch: true}
	s, err := l.run(context.WithoutCancel(t.Context()))
	if err != nil || s.Answered == 0 || s.Refused == 0 || s.Broken == 0 || s.Unsure != s.Broken || len(s.Latencies) > s.Answered {
		t.Errorf("got %+v, %v", s, err)
	}
	if all := s.Answered + s.Refused + s.Unsure; int64(all) > count.Load() {
		t.Errorf("of %d requests %d are counted", count.Load(), all)
	}
	count.Store(0)
	l = &Load{Workload: work, Addr: srv.Listener.Addr().String(), Conns: 1, Begin: begin, End: time.Now().Add(time.Minute)}
	if _, err := l.run(context.WithoutCancel(t.Context())); err == nil || !strings.Contains(err.Error(), "answered 503, want 201") {
		t.Errorf("got %v", err)
	}
}

// TestConnReadsResponses reads responses with a length and in chunks, with Next and with Pour.
func TestConnReadsResponses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 100_000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
		case "/cut":
			w.Header().Set("Content-Length", strconv.Itoa(len(long)+1))
		case "/no":
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, long)
	}))
	t.Cleanup(srv.Close)
	for path, want := range map[string]string{"/length": "", "/chunks": "", "/no": "answered 418, want 200: long", "/cut": "EOF"} {
		request := []byte("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n")
		addr := srv.Listener.Addr().String()
		body, err := Ask(t.Context(), addr, request, http.StatusOK)
		if (err == nil) != (want == "") || (err == nil && string(body) != long) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %.20q, %v", path, body, err)
		}
		conn, err := Dial(t.Context(), addr, time.Now().Add(time.Minute), Most)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // over one connection
			var poured strings.Builder
			if _, err = conn.Write(request); err == nil {
				_, err = conn.Pour(http.StatusOK, &poured)
			}
			if (err == nil) != (want == "") || (err == nil && poured.String() != long) {
				t.Errorf("%s: poured %.20q, %v", path, poured.String(), err)
			}
			if err != nil {
				break
			}
		}
		_ = conn.Close()
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1)*time.Millisecond)
	}
	for _, c := range []struct {
		samples []time.Duration
		p       int
		want    float64
	}{
		{nil, 50, 0}, {hundred[:1], 50, 1}, {hundred[:1], 100, 1}, {hundred[:2], 50, 1}, {hundred[:3], 50, 2},
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred[:10], 99, 10},
	} {
		if got := Quantile(c.samples, c.p, 100); got != c.want {
			t.Errorf("percentile %d of %d samples is %v, want %v", c.p, len(c.samples), got, c.want)
		}
	}
}

package loadgen

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestOpenLoop makes sure that requests come due at their rate whatever the
// answers, and that latencies begin when they are due.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	const every, span = 2 * time.Millisecond, 400 * time.Millisecond
	begin := time.Now()
	l := &Load{Rate: float64(time.Second / every), End: begin.Add(span), due: make(chan time.Time, span/every+1)}
	l.pace() // nobody answers
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
	if err != nil || s.Err != nil {
		t.Fatal(err, s.Err)
	}
	// All that came due are answered, also after the end; on a busy machine pace began late.
	if s.Answered > int(span/every)+1 || len(s.Latencies) != s.Answered {
		t.Errorf("%d requests were answered and %d counted", s.Answered, len(s.Latencies))
	}

	late := time.Now().Add(-time.Second)
	l = &Load{Workload: work, Addr: addr, Conns: 1, End: time.Now().Add(time.Second), due: make(chan time.Time, 1)}
	l.due <- late
	close(l.due)
	conns, err := l.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conns[0].Close() }()
	s = Sample{}
	l.work(conns[0], 0, &s)
	if len(s.Latencies) != 1 || s.Latencies[0] < time.Second {
		t.Errorf("a request that was a second late took %v", s.Latencies)
	}
}

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
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	t.Cleanup(srv.Close)
	addr := srv.Listener.Addr().String()
	work := Workload{Status: http.StatusCreated, Requests: [][]byte{[]byte("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n")}}
	begin := time.Now()
	l := &Load{Workload: work, Addr: addr, Conns: 3, Rate: 500, Begin: begin, End: begin.Add(400 * time.Millisecond)}
	s, err := l.run(context.WithoutCancel(t.Context()))
	if err != nil || s.Err != nil {
		t.Fatal(err, s.Err)
	}
	// 200 come due, less what passed before the first.
	if s.Answered < 100 || s.Answered > 201 || len(s.Latencies) != s.Answered {
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

// Package loadgen sends requests and takes the time: as fast as they are answered, or at
// a rate whatever the answers. Its client knows little of HTTP/1.1, since one that costs
// more than the server would be measured instead of it.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
)

// AnswerTimeout is how long after the end of a cell its last answer may come.
const AnswerTimeout = 30 * time.Second

// A Load is a closed loop of requests on some connections: each sends its next
// one when the last one is answered. With a rate it is an open one: requests are due
// at times of their own, whatever the answers, and wait for a connection.
type Load struct {
	Workload
	Addr       string
	Conns      int
	Rate       float64   // requests a second; 0 for a closed loop
	Begin, End time.Time // when samples are taken

	failed atomic.Bool
	due    chan time.Time // of an open loop
}

// A Sample is what a load saw.
type Sample struct {
	Latencies []time.Duration // of the requests answered in time, shortest first
	Answered  int             // all requests with the right answer, warm-up included
	Errors    int
	Err       error // the first of them
}

// run connects, loads until the end and returns when every request is answered.
// One that fails ends the load.
func (l *Load) run(ctx context.Context) (Sample, error) {
	conns, err := l.connect(ctx)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	if err != nil {
		return Sample{}, err
	}
	defer context.AfterFunc(ctx, func() { l.failed.Store(true) })()
	parts := make([]Sample, l.Conns)
	var wg sync.WaitGroup
	if l.Rate > 0 {
		l.due = make(chan time.Time, int(l.Rate*time.Until(l.End).Seconds())+1)
		wg.Go(l.pace)
	}
	for i, c := range conns {
		wg.Go(func() { l.work(c, i, &parts[i]) })
	}
	wg.Wait()
	var all Sample
	for i := range parts {
		all.Add(&parts[i])
	}
	slices.Sort(all.Latencies)
	return all, ctx.Err()
}

// Add adds what one connection saw.
func (s *Sample) Add(part *Sample) {
	s.Latencies = append(s.Latencies, part.Latencies...)
	s.Answered += part.Answered
	s.Errors += part.Errors
	if s.Err == nil {
		s.Err = part.Err
	}
}

func (l *Load) connect(ctx context.Context) (conns []net.Conn, err error) {
	for range l.Conns {
		c, err := Dial(ctx, l.Addr, l.End.Add(AnswerTimeout))
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

// work is the loop of one connection.
func (l *Load) work(conn net.Conn, number int, s *Sample) {
	s.Latencies = make([]time.Duration, 0, 1<<16)
	reader := NewAnswers(conn)
	// Connections begin at different requests, spread over all of them.
	next := number * len(l.Requests) / l.Conns
	var buf []byte
	for !l.failed.Load() {
		start, ok := l.turn()
		if !ok {
			return
		}
		buf = l.Fresh(buf, next, number, s.Answered)
		if err := l.once(conn, reader, buf); err != nil {
			s.Errors, s.Err = 1, err
			l.failed.Store(true)
			return
		}
		end := time.Now()
		s.Answered++
		if l.counts(start, end) {
			s.Latencies = append(s.Latencies, end.Sub(start))
		}
		if next++; next == len(l.Requests) {
			next = 0
		}
	}
}

func (l *Load) once(conn net.Conn, reader *Answers, request []byte) error {
	if _, err := conn.Write(request); err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	_, err := reader.Next(l.Status, false)
	return err
}

// A Workload is the requests of a cell. Every connection sends all of them in
// turn, each beginning with another one.
type Workload struct {
	Status   int // that every answer must have
	Requests [][]byte
	Keys     []int // where each request has room for an idempotency key; nil for none
}

// SampleKey holds the place of an idempotency key, which is as long as a UUID.
const SampleKey = "00000000-0000-4000-8000-000000000000"

// Fresh returns request number i with a key that no other request has, in buf.
func (w *Workload) Fresh(buf []byte, i, conn, count int) []byte {
	if w.Keys == nil {
		return w.Requests[i]
	}
	buf = append(buf[:0], w.Requests[i]...)
	random := fixture.Scatter(conn<<40 | count)
	copy(buf[w.Keys[i]:], fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(random), uint16(random>>32), random>>48&0xfff, //nolint:gosec // parts of it
		random>>60, conn<<32|count))
	return buf
}

// Watched runs the load and reads the CPU times at its beginning and end.
func (l *Load) Watched(ctx context.Context, server int) (s Sample, before, after proc.Usage, err error) {
	var loadErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, loadErr = l.run(ctx)
	}()
	WaitUntil(l.Begin, done)
	before, err = proc.ReadUsage(server)
	WaitUntil(l.End, done)
	after, afterErr := proc.ReadUsage(server)
	<-done
	return s, before, after, errors.Join(loadErr, err, afterErr)
}

// WaitUntil returns at that time, or earlier when done is closed.
func WaitUntil(t time.Time, done <-chan struct{}) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

// pace has requests come due until the end, and waits for no answer.
func (l *Load) pace() {
	defer close(l.due)
	first := time.Now()
	for i := 0; !l.failed.Load(); i++ {
		due := first.Add(time.Duration(float64(i) / l.Rate * float64(time.Second)))
		if !due.Before(l.End) || i == cap(l.due) {
			return
		}
		sleepUntil(due)
		l.due <- due
	}
}

// turn waits until the next request may be sent, and returns since when it should
// have been.
func (l *Load) turn() (start time.Time, ok bool) {
	if l.due != nil {
		start, ok = <-l.due
		return start, ok
	}
	start = time.Now()
	return start, start.Before(l.End)
}

// counts reports whether a request is one of those between begin and end. Those of
// an open loop are what was due then, or slow answers would not count.
func (l *Load) counts(start, end time.Time) bool {
	if l.due != nil {
		return !start.Before(l.Begin)
	}
	return !end.Before(l.Begin) && end.Before(l.End)
}

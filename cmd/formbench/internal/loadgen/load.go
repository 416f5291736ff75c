package loadgen

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
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

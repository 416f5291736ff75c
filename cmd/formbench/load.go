package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// answerTimeout is how long after the end of a cell its last answer may come.
const answerTimeout = 30 * time.Second

// A load is a closed loop of requests on some connections: each sends its next
// one when the last one is answered. With a rate it is an open one: requests are due
// at times of their own, whatever the answers, and wait for a connection.
type load struct {
	workload
	addr       string
	conns      int
	rate       float64   // requests a second; 0 for a closed loop
	begin, end time.Time // when samples are taken

	failed atomic.Bool
	due    chan time.Time // of an open loop
}

// A sample is what a load saw.
type sample struct {
	latencies []time.Duration // of the requests answered in time, shortest first
	answered  int             // all requests with the right answer, warm-up included
	errors    int
	err       error // the first of them
}

// run connects, loads until the end and returns when every request is answered.
// One that fails ends the load.
func (l *load) run(ctx context.Context) (sample, error) {
	conns, err := l.connect(ctx)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	if err != nil {
		return sample{}, err
	}
	defer context.AfterFunc(ctx, func() { l.failed.Store(true) })()
	parts := make([]sample, l.conns)
	var wg sync.WaitGroup
	if l.rate > 0 {
		l.due = make(chan time.Time, int(l.rate*time.Until(l.end).Seconds())+1)
		wg.Go(l.pace)
	}
	for i, c := range conns {
		wg.Go(func() { l.work(c, i, &parts[i]) })
	}
	wg.Wait()
	var all sample
	for i := range parts {
		all.add(&parts[i])
	}
	slices.Sort(all.latencies)
	return all, ctx.Err()
}

func (s *sample) add(part *sample) {
	s.latencies = append(s.latencies, part.latencies...)
	s.answered += part.answered
	s.errors += part.errors
	if s.err == nil {
		s.err = part.err
	}
}

func (l *load) connect(ctx context.Context) (conns []net.Conn, err error) {
	for range l.conns {
		c, err := dial(ctx, l.addr, l.end.Add(answerTimeout))
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

// work is the loop of one connection.
func (l *load) work(conn net.Conn, number int, s *sample) {
	s.latencies = make([]time.Duration, 0, 1<<16)
	reader := newAnswers(conn)
	// Connections begin at different requests, spread over all of them.
	next := number * len(l.requests) / l.conns
	var buf []byte
	for !l.failed.Load() {
		start, ok := l.turn()
		if !ok {
			return
		}
		buf = l.fresh(buf, next, number, s.answered)
		if err := l.once(conn, reader, buf); err != nil {
			s.errors, s.err = 1, err
			l.failed.Store(true)
			return
		}
		end := time.Now()
		s.answered++
		if l.counts(start, end) {
			s.latencies = append(s.latencies, end.Sub(start))
		}
		if next++; next == len(l.requests) {
			next = 0
		}
	}
}

func (l *load) once(conn net.Conn, reader *answers, request []byte) error {
	if _, err := conn.Write(request); err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	_, err := reader.next(l.status, false)
	return err
}

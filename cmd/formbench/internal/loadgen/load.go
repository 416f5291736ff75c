// Package loadgen sends requests and measures their response times: in a closed loop as fast as they are answered, or
// in an open loop at a fixed rate, with latencies from when each request was due. Requests are prepared bytes and
// fasthttp parses the responses, because a client that costs more than the server would measure itself.
package loadgen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
)

// AnswerTimeout is how long after the end of a cell the last response may arrive.
const AnswerTimeout = 30 * time.Second

// A Load is a closed loop of requests on some connections: each sends its next request after the last response. With a
// rate it is an open loop: requests are due at fixed times, independent of the responses, and wait for a connection.
type Load struct {
	Workload
	Addr       string
	Conns      int
	Rate       float64   // requests a second; 0 for a closed loop
	Begin, End time.Time // when samples are taken

	// TooMuch is true if the server may refuse requests. Broken connections are opened again. In an open loop latencies
	// begin when a request is sent, and a request that is a second late is dropped.
	TooMuch bool
	Polite  bool // wait as Retry-After says when refused

	failed atomic.Bool
	due    chan time.Time // of an open loop
}

// A Sample has the results of a load.
type Sample struct {
	Latencies []time.Duration // of the requests answered in time, ascending
	Answered  int             // all requests with the right response, warm-up included
	Err       error           // the first error that ended a connection

	// With TooMuch, between Begin and End:
	Refused int
	Unsent  int // dropped
	Broken  int // connections
	Unsure  int // requests without a response, warm-up included
}

const (
	tooLate     = time.Second // when a request is dropped
	politely    = time.Second // what Retry-After says
	unavailable = 503         // the status of a refused request
)

// run sends requests until the end and returns when every request is answered. A failed request ends the load.
func (l *Load) run(ctx context.Context) (Sample, error) {
	defer context.AfterFunc(ctx, func() { l.failed.Store(true) })()
	parts := make([]Sample, l.Conns)
	var wg sync.WaitGroup
	if l.Rate > 0 {
		l.due = make(chan time.Time, int(l.Rate*time.Until(l.End).Seconds())+1)
		wg.Go(l.pace)
	}
	for i := range parts {
		wg.Go(func() {
			if parts[i].Err = l.work(ctx, i, &parts[i]); parts[i].Err != nil {
				l.failed.Store(true)
			}
		})
	}
	wg.Wait()
	var all Sample
	for i := range parts {
		all.Add(&parts[i])
	}
	slices.Sort(all.Latencies)
	return all, errors.Join(all.Err, ctx.Err())
}

// Add adds the sample of one connection.
func (s *Sample) Add(part *Sample) {
	s.Latencies = append(s.Latencies, part.Latencies...)
	s.Answered += part.Answered
	s.Refused += part.Refused
	s.Unsent += part.Unsent
	s.Broken += part.Broken
	s.Unsure += part.Unsure
	if s.Err == nil {
		s.Err = part.Err
	}
}

// work is the loop of one connection.
func (l *Load) work(ctx context.Context, number int, s *Sample) error {
	s.Latencies = make([]time.Duration, 0, 1<<12)
	var conn *Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	// Connections begin at different requests, spread over all of them.
	next := number * len(l.Requests) / l.Conns
	var buf []byte
	for !l.failed.Load() {
		if conn == nil {
			var err error
			if conn, err = Dial(ctx, l.Addr, l.End.Add(AnswerTimeout), Most); err != nil {
				if !l.TooMuch {
					return err
				}
				s.Broken++
				time.Sleep(time.Millisecond)
				if !time.Now().Before(l.End) {
					return nil
				}
				continue
			}
		}
		start, ok := l.turn(s)
		if !ok {
			return nil
		}
		buf = l.Fresh(buf, next, number, s.Answered)
		status, err := conn.once(buf)
		switch {
		case err != nil && l.TooMuch:
			s.Broken++
			s.Unsure++
			_ = conn.Close()
			conn = nil
		case err != nil:
			return err
		case status != l.Status && (status != unavailable || !l.TooMuch):
			return fmt.Errorf("answered %d, want %d: %.300s", status, l.Status, conn.answer.Body())
		default:
			l.note(s, status, start)
		}
		next = (next + 1) % len(l.Requests)
	}
	return nil
}

// note counts a response.
func (l *Load) note(s *Sample, status int, start time.Time) {
	end := time.Now()
	counts := l.counts(start, end)
	if status == l.Status {
		s.Answered++
		if counts {
			s.Latencies = append(s.Latencies, end.Sub(start))
		}
		return
	}
	if counts {
		s.Refused++
	}
	if l.Polite {
		time.Sleep(min(politely, max(time.Until(l.End), 0)))
	}
}

func (c *Conn) once(request []byte) (status int, err error) {
	if _, err := c.Write(request); err != nil {
		return 0, fmt.Errorf("send a request: %w", err)
	}
	return c.read()
}

// A Workload is the requests of a cell. Every connection sends all of them in turn, and each begins with a different
// one.
type Workload struct {
	Status   int // that every response must have
	Requests [][]byte
	Keys     []int // where each request has room for an idempotency key; nil for none
}

// SampleKey marks the place of an idempotency key, which is as long as a UUID.
const SampleKey = "00000000-0000-4000-8000-000000000000"

// Fresh returns request number i with a key that no other request has, in buf.
func (w *Workload) Fresh(buf []byte, i, conn, count int) []byte {
	if w.Keys == nil {
		return w.Requests[i]
	}
	buf = append(buf[:0], w.Requests[i]...)
	random := fixture.Scatter(conn<<40 | count)
	copy(buf[w.Keys[i]:], fmt.Sprintf("%016x-%019x", random, conn<<32|count))
	return buf
}

// Watched runs the load and reads the CPU times at its beginning and end.
func (l *Load) Watched(ctx context.Context, server int) (s Sample, before, after proc.Times, err error) {
	var loadErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, loadErr = l.run(ctx)
	}()
	WaitUntil(l.Begin, done)
	before, err = proc.ReadTimes(server)
	WaitUntil(l.End, done)
	after, afterErr := proc.ReadTimes(server)
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

// pace makes requests come due until the end, without waiting for responses.
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

// sleepUntil returns at that time, some 60 µs late. Go's own timers may be a millisecond late in an otherwise idle
// process.
func sleepUntil(t time.Time) {
	for left := time.Until(t); left > 0; left = time.Until(t) {
		wait := syscall.NsecToTimespec(int64(left))
		if err := syscall.Nanosleep(&wait, nil); err != nil && err != syscall.EINTR {
			time.Sleep(left)
		}
	}
}

// turn waits until the next request may be sent, and returns when it was due.
func (l *Load) turn(s *Sample) (start time.Time, ok bool) {
	for l.due != nil {
		start, ok = <-l.due
		if !ok || !l.TooMuch {
			return start, ok
		}
		now := time.Now()
		if now.Sub(start) < tooLate {
			return now, now.Before(l.End)
		}
		s.Unsent++
	}
	start = time.Now()
	return start, start.Before(l.End)
}

// counts reports whether a request is counted, between begin and end. In an open loop the due time decides; otherwise
// slow responses would not count.
func (l *Load) counts(start, end time.Time) bool {
	if l.due != nil && !l.TooMuch {
		return !start.Before(l.Begin)
	}
	return !end.Before(l.Begin) && end.Before(l.End)
}

// Quantile returns the given quantile of ascending samples (nearest rank) in milliseconds, or 0 without samples.
func Quantile(sorted []time.Duration, part, whole int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*part + whole - 1) / whole
	return Milliseconds(sorted[max(rank-1, 0)])
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A Conn is a connection to a server, with a reader for its responses.
type Conn struct {
	net.Conn
	reader *bufio.Reader
	answer fasthttp.Response
}

// Most is longer than most responses.
const Most = 32 << 10

// Dial opens a connection with a deadline for everything on it. It reads up to this many bytes at once.
func Dial(ctx context.Context, addr string, deadline time.Time, size int) (*Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), conn.Close())
	}
	c := &Conn{Conn: conn, reader: bufio.NewReaderSize(conn, size)}
	c.answer.KeepBodyBuffer = true
	return c, nil
}

// Next reads one response, which must have the status, and returns its body, valid until the next call.
func (c *Conn) Next(want int) ([]byte, error) {
	status, err := c.read()
	if err == nil && status != want {
		err = fmt.Errorf("answered %d, want %d: %.300s", status, want, c.answer.Body())
	}
	return c.answer.Body(), err
}

func (c *Conn) read() (status int, err error) {
	if err := c.answer.Read(c.reader); err != nil {
		return 0, fmt.Errorf("read an answer: %w", err)
	}
	return c.answer.StatusCode(), nil
}

// Pour reads one response, which must have the status, and writes its body.
func (c *Conn) Pour(want int, w io.Writer) (n int64, err error) {
	c.answer.StreamBody = true
	defer func() {
		c.answer.StreamBody = false
		if closeErr := c.answer.CloseBodyStream(); err == nil {
			err = closeErr
		}
	}()
	status, err := c.read()
	if err != nil {
		return 0, err
	}
	if status != want {
		return 0, fmt.Errorf("answered %d, want %d: %.300s", status, want, c.answer.Body())
	}
	return io.CopyBuffer(w, struct{ io.Reader }{c.answer.BodyStream()}, make([]byte, c.reader.Size()))
}

// Ask sends one request on a connection of its own and returns the response's body.
func Ask(ctx context.Context, addr string, request []byte, want int) ([]byte, error) {
	conn, err := Dial(ctx, addr, time.Now().Add(AnswerTimeout), Most)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(request); err != nil {
		return nil, fmt.Errorf("send a request: %w", err)
	}
	return conn.Next(want)
}

package overload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
)

// A pressure is requests on many connections, whether they are served or refused.
type pressure struct {
	loadgen.Workload
	addr       string
	conns      int
	begin, end time.Time
	polite     bool    // whether who is refused waits as he is told
	rate       float64 // requests a second that come whatever the answers; 0: each connection sends when it can

	came atomic.Int64 // with a rate: how many have come
}

// tooLate is after how long a request is given up that found no connection to be sent on.
const tooLate = time.Second

// politely is how long a client waits that is refused: what Retry-After says.
const politely = time.Second

// A tally is how many responses were made.
type tally struct{ sure, unsure int }

// pressed is what the clients saw between begin and end, and in made from first to last.
type pressed struct {
	latencies []time.Duration // of the responses that were made, shortest first
	sent      int
	unsent    int
	refused   int
	broken    int // connections
	made      tally
	err       error
}

// run presses until the end and returns when every request is answered.
func (p *pressure) run(ctx context.Context) (all pressed, err error) {
	parts := make([]pressed, p.conns)
	var group sync.WaitGroup
	for i := range parts {
		group.Go(func() { p.work(ctx, i, &parts[i]) })
	}
	group.Wait()
	for i := range parts {
		x := &parts[i]
		all.latencies = append(all.latencies, x.latencies...)
		all.sent, all.unsent, all.refused, all.broken = all.sent+x.sent, all.unsent+x.unsent, all.refused+x.refused, all.broken+x.broken
		all.made.sure, all.made.unsure = all.made.sure+x.made.sure, all.made.unsure+x.made.unsure
		all.err = errors.Join(all.err, x.err)
	}
	slices.Sort(all.latencies)
	return all, errors.Join(all.err, ctx.Err())
}

// watched is run, with the CPU times at the beginning and end.
func (p *pressure) watched(ctx context.Context, server int) (s pressed, before, after proc.Usage, err error) {
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, failed = p.run(ctx)
	}()
	loadgen.WaitUntil(p.begin, done)
	before, err = proc.ReadUsage(server)
	loadgen.WaitUntil(p.end, done)
	after, afterErr := proc.ReadUsage(server)
	<-done
	return s, before, after, errors.Join(failed, err, afterErr)
}

// work is the loop of one client, who opens a new connection when one breaks.
func (p *pressure) work(ctx context.Context, number int, s *pressed) {
	var conn net.Conn
	var reader *loadgen.Answers
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for next := number; ctx.Err() == nil; next++ {
		start, ok := p.turn(s)
		if !ok {
			return
		}
		if conn == nil {
			var err error
			if conn, err = loadgen.Dial(ctx, p.addr, p.end.Add(loadgen.AnswerTimeout)); err != nil {
				s.broken++
				time.Sleep(time.Millisecond)
				continue
			}
			reader = loadgen.NewAnswers(conn)
		}
		status, err := p.once(conn, reader, p.Requests[next%len(p.Requests)])
		if err != nil {
			s.broken++
			s.made.unsure++
			_ = conn.Close()
			conn = nil
			continue
		}
		s.note(status, start, p)
		if status == unavailable && p.polite {
			time.Sleep(min(politely, max(time.Until(p.end), 0)))
		}
	}
}

// unavailable is the status of what is refused.
const unavailable = 503

// turn waits until the next request is to be sent, and returns when that is.
func (p *pressure) turn(s *pressed) (start time.Time, ok bool) {
	for p.rate > 0 {
		due := p.begin.Add(time.Duration(float64(p.came.Add(1)) / p.rate * float64(time.Second)))
		if !due.Before(p.end) {
			return due, false
		}
		time.Sleep(time.Until(due))
		if start = time.Now(); start.Sub(due) < tooLate {
			return start, true
		}
		s.unsent++
	}
	start = time.Now()
	return start, start.Before(p.end)
}

func (p *pressure) once(conn net.Conn, reader *loadgen.Answers, request []byte) (status int, err error) {
	if _, err := conn.Write(request); err != nil {
		return 0, fmt.Errorf("send a request: %w", err)
	}
	status, length, err := reader.Head()
	if err != nil {
		return 0, err
	}
	_, err = reader.Body(length, false)
	return status, err
}

// note counts an answer.
func (s *pressed) note(status int, start time.Time, p *pressure) {
	end := time.Now()
	during := !end.Before(p.begin) && end.Before(p.end)
	if during {
		s.sent++
	}
	switch {
	case status == p.Status:
		s.made.sure++
		if during {
			s.latencies = append(s.latencies, end.Sub(start))
		}
	case status != unavailable:
		s.err = fmt.Errorf("answered %d", status)
	case during:
		s.refused++
	}
}

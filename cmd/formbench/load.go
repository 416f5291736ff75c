package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// answerLimit is how long a response may take.
const answerLimit = time.Minute

// A conn is a keep-alive connection to a server. Requests are prepared bytes, because a client that costs more than the
// server would measure itself.
type conn struct {
	net.Conn
	reader *bufio.Reader
}

func dial(ctx context.Context, addr string) (*conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReaderSize(c, 32<<10)}, nil
}

// exchange sends a request and reads the response, which must have the status.
func (c *conn) exchange(request []byte, status int, answer *fasthttp.Response) error {
	if err := c.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	if _, err := c.Write(request); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := answer.Read(c.reader); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	if answer.StatusCode() != status {
		return fmt.Errorf("answered %d, want %d: %.300s", answer.StatusCode(), status, answer.Body())
	}
	return nil
}

// A load is a closed loop: each connection sends its next request after the last response.
type load struct {
	conns  int
	status int
	next   func(buf []byte, i int) []byte // returns request number i, if it wants in buf
	n      int                            // requests; 0 to end after warm and length
	warm   time.Duration                  // at the beginning, not measured
	length time.Duration
	answer func(i int, body []byte) error // sees each response, unless nil

	number     atomic.Int64
	begin, end time.Time // of the measurement
}

// run runs the load and reads the CPU times around the measurement. The first failed request ends it. answered counts all
// requests, the warm-up included.
func (l *load) run(ctx context.Context, t *target) (s sample, answered int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.number.Store(0)
	l.begin = time.Now().Add(l.warm)
	l.end = l.begin.Add(l.length)
	parts, counts := make([][]time.Duration, l.conns), make([]int, l.conns)
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			var err error
			if parts[i], counts[i], err = l.work(ctx, t.addr); err != nil {
				cancel(err)
			}
		})
	}
	time.Sleep(time.Until(l.begin))
	s.before, err = t.used()
	if l.n == 0 {
		time.Sleep(time.Until(l.end))
	} else {
		wg.Wait()
	}
	s.elapsed = time.Since(l.begin)
	var afterErr error
	s.after, afterErr = t.used()
	wg.Wait()
	for i, n := range counts {
		answered += n
		s.latencies = append(s.latencies, parts[i]...)
	}
	s.n = len(s.latencies)
	slices.Sort(s.latencies)
	return s, answered, errors.Join(context.Cause(ctx), err, afterErr)
}

// work is the loop of one connection. It returns the latencies of the requests that were answered in the measurement.
func (l *load) work(ctx context.Context, addr string) (latencies []time.Duration, answered int, err error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = c.Close() }()
	var buf []byte
	var answer fasthttp.Response
	for sent := time.Now(); ctx.Err() == nil && (l.n > 0 || sent.Before(l.end)); sent = time.Now() {
		i := int(l.number.Add(1)) - 1
		if l.n > 0 && i >= l.n {
			break
		}
		buf = l.next(buf, i)
		if err := c.exchange(buf, l.status, &answer); err != nil {
			return nil, answered, err
		}
		now := time.Now()
		answered++
		if l.answer != nil {
			if err := l.answer(i, answer.Body()); err != nil {
				return nil, answered, err
			}
		}
		if !now.Before(l.begin) && (l.n > 0 || now.Before(l.end)) {
			latencies = append(latencies, now.Sub(sent))
		}
	}
	return latencies, answered, nil
}

// mark precedes the number of a response in its user's address.
const mark = "respondent."

const numberDigits = 8

// A template is a text around a number.
type template struct{ before, after []byte }

func newTemplate(text []byte) template {
	at := bytes.Index(text, []byte(mark)) + len(mark)
	return template{text[:at], text[at+numberDigits:]}
}

// with returns the text with number i, in buf.
func (t template) with(buf []byte, i int) []byte {
	return fmt.Appendf(buf[:0], "%s%0*d%s", t.before, numberDigits, i, t.after)
}

// numberOf returns the number in a text.
func numberOf(text []byte) (int, bool) {
	at := bytes.Index(text, []byte(mark))
	if at < 0 || len(text) < at+len(mark)+numberDigits {
		return 0, false
	}
	i, err := strconv.Atoi(string(text[at+len(mark):][:numberDigits]))
	return i, err == nil && i >= 0
}

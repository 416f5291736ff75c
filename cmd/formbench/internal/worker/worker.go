// Package worker is shared by the processes of the delivery benchmarks. It has their commands, offers events to a
// system, and signs and posts a payload without one.
//
// A worker reads a Config and then Commands as JSON from its standard input, and sends a Reply to each of them. It
// ends when the input does, so that it never outlives its parent.
package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// A Config configures a worker. Each kind of worker reads the fields that it needs.
type Config struct {
	Role      string
	DSN       string
	URL       string   // where to post
	Body      []byte   // the payload, see NewBody
	Conns     int      // the maximum number of posts in flight
	Campaigns []string // that get responses in turn
	Account   string   // that owns them
	Cut       bool     // ends requests in flight at once when deliveries stop
	Profile   string   // file for a CPU profile
}

// The commands of a worker.
const (
	Accept   = "accept"   // offer N events
	Start    = "start"    // deliver
	Stop     = "stop"     // stop delivering; finished deliveries are durable afterwards
	Count    = "count"    // return the number of finished deliveries by the system's own records
	Post     = "post"     // N events from memory, without a system
	Reset    = "reset"    // discard the arrivals and return their number
	Wait     = "wait"     // for N deliveries to Endpoints, or for Timeout
	Arrivals = "arrivals" // return the arrivals
)

// A Command tells a worker to do something.
type Command struct {
	Do        string
	N         int
	Callers   int           // of a closed loop
	Every     time.Duration // between two events of an open loop; 0 means a closed loop
	Stamps    bool          // report when each event was accepted
	Endpoints int           // only the first ones count; 0 for all
	Timeout   time.Duration
}

// A Reply is the result of a command.
type Reply struct {
	Error    string            `json:",omitempty"`
	Addr     string            `json:",omitempty"`
	Addrs    map[string]string `json:",omitempty"`
	N        int               `json:",omitempty"`
	Bad      int               `json:",omitempty"` // requests with a wrong signature or content
	Requests int               `json:",omitempty"`
	Seconds  float64           `json:",omitempty"`
	Stamps   []Stamp           `json:",omitempty"` // by the event's number
	Arrivals []Arrival         `json:",omitempty"`
}

// A Stamp has the times when an event was offered and when the system had stored it, in nanoseconds since 1970.
type Stamp struct{ Begin, Done int64 }

// An Arrival has the time when a delivery first arrived, in nanoseconds since 1970.
type Arrival struct {
	At       int64
	Number   int // of the event
	Endpoint int
}

// A Worker executes one command at a time.
type Worker interface {
	Do(ctx context.Context, c Command) (Reply, error)
	Close() error
}

// gcPercent is the setting of "formsvc serve".
const gcPercent = 200

// Run runs the process of a worker. start creates the worker and returns its first reply, which reports that it is
// ready.
func Run(
	ctx context.Context, in io.Reader, out io.Writer,
	start func(context.Context, *Config) (w Worker, ready Reply, err error),
) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	decoder := json.NewDecoder(in)
	var cfg Config
	if err := decoder.Decode(&cfg); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, reply, err := start(ctx, &cfg)
	if err != nil {
		return errors.Join(err, json.NewEncoder(out).Encode(Reply{Error: err.Error()}))
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	commands := make(chan Command)
	go func() {
		defer cancel()
		for {
			var c Command
			if decoder.Decode(&c) != nil {
				return
			}
			select {
			case commands <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	return obey(ctx, w, reply, commands, out)
}

// obey executes commands until ctx ends.
func obey(ctx context.Context, w Worker, reply Reply, commands <-chan Command, out io.Writer) error {
	encoder := json.NewEncoder(out)
	for {
		if err := encoder.Encode(&reply); err != nil {
			return fmt.Errorf("reply: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case c := <-commands:
			var err error
			if reply, err = w.Do(ctx, c); err != nil {
				reply.Error = fmt.Sprintf("%s: %v", c.Do, err)
			}
		}
	}
}

// StartProfile writes a CPU profile into a file until stop is called. Without a path it does nothing.
func StartProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path) //nolint:gosec // the user names the directory
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// Offer calls accept with the numbers 0 to c.N-1: in a closed loop by c.Callers, each of which calls again when the
// last call has returned, or every c.Every, independent of earlier calls. It returns when all calls have returned, with
// the first error.
func Offer(ctx context.Context, c *Command, accept func(ctx context.Context, number int) error) (Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stamps := make([]Stamp, c.N)
	once := func(i int) {
		stamps[i].Begin = time.Now().UnixNano()
		if err := accept(ctx, i); err != nil {
			cancel(err)
		}
		stamps[i].Done = time.Now().UnixNano()
	}
	start := time.Now()
	if c.Every > 0 {
		open(ctx, c.N, c.Every, once)
	} else {
		closed(ctx, c.N, c.Callers, once)
	}
	r := Reply{N: c.N, Seconds: time.Since(start).Seconds()}
	if c.Stamps {
		r.Stamps = stamps
	}
	return r, context.Cause(ctx)
}

func closed(ctx context.Context, n, callers int, once func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(1, min(callers, n)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				once(i)
			}
		})
	}
	wg.Wait()
}

func open(ctx context.Context, n int, every time.Duration, once func(int)) {
	var wg sync.WaitGroup
	start := time.Now()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		time.Sleep(time.Until(start.Add(time.Duration(i) * every)))
		wg.Go(func() { once(i) })
	}
	wg.Wait()
}

// Secret is the secret of every webhook.
const Secret = "formbench-secret-0123456789abcdef"

// A Body is the payload of an event that contains the event's number.
type Body struct {
	text []byte
	at   int // of the number
}

const (
	numberMark   = "respondent."
	numberDigits = 7
)

// NewBody takes a payload with a mark and digits, which the number replaces.
func NewBody(text []byte) (Body, error) {
	at := bytes.Index(text, []byte(numberMark))
	if at < 0 || len(text) < at+len(numberMark)+numberDigits {
		return Body{}, errors.New("the payload has no number")
	}
	return Body{text, at + len(numberMark)}, nil
}

// With returns the payload of event number i.
func (b Body) With(i int) []byte {
	text := bytes.Clone(b.text)
	for at := b.at + numberDigits - 1; at >= b.at; at-- {
		text[at] = "0123456789"[i%10]
		i /= 10
	}
	return text
}

// Number returns the event number of a payload.
func Number(text []byte) (i int, ok bool) {
	b, err := NewBody(text)
	if err != nil {
		return 0, false
	}
	for _, digit := range text[b.at : b.at+numberDigits] {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		i = i*10 + int(digit-'0')
	}
	return i, true
}

// A Poster signs and posts payloads over persistent connections.
type Poster struct {
	url       string
	transport *http.Transport
}

// NewPoster returns a poster that keeps up to this many connections.
func NewPoster(url string, conns int) *Poster {
	return &Poster{url, &http.Transport{
		MaxIdleConns: conns, MaxIdleConnsPerHost: conns, DisableCompression: true,
	}}
}

// Post posts a payload. id names the delivery.
func (p *Poster) Post(ctx context.Context, id string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(webhook.DeliveryHeader, id)
	req.Header.Set(webhook.SignatureHeader, webhook.Sign([]byte(Secret), body))
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("post: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("post: answered %d", resp.StatusCode)
	}
	return nil
}

// Close closes the idle connections.
func (p *Poster) Close() { p.transport.CloseIdleConnections() }

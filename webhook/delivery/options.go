package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/formsvc/toolkit/webhook/egress"
)

// The defaults of [Options].
const (
	// DefaultTimeout is the webhook timeout of the service's documentation,
	// under Limits.
	DefaultTimeout = 30 * time.Second
	// DefaultConcurrency suits receivers that answer at once, and leaves room for
	// the outcomes that are being recorded.
	DefaultConcurrency = 512
	// DefaultPerEndpoint is earned one success at a time; fewer cannot keep a
	// receiver busy while the queue commits.
	DefaultPerEndpoint = 64
	// DefaultSlowAfter is long for a receiver that answers before it works.
	DefaultSlowAfter = time.Second
	// DefaultMaxBytes is in bytes: 67 payloads of the largest size.
	DefaultMaxBytes = 64 << 20
	// DefaultLease leaves half of it for the queue.
	DefaultLease = time.Minute
	// DefaultPollInterval is how late a retry can be.
	DefaultPollInterval = time.Second
	// DefaultMaxAnswer is in bytes. Reading this much is cheaper than a new
	// connection.
	DefaultMaxAnswer = 64 << 10
	// DefaultDrainTimeout fits the 30 seconds that process managers usually
	// give, with the time to record the outcomes.
	DefaultDrainTimeout = 10 * time.Second
	// DefaultUserAgent names the sender.
	DefaultUserAgent = "formsvc-webhooks/1"
)

// DefaultRetries returns the delays of the service's documentation, under
// Delivery rules: 1, 5 and 30 minutes.
func DefaultRetries() []time.Duration {
	return []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute}
}

// leaseMargin is the least that Lease must exceed Timeout by: time to load the
// payload before the request, and to record the outcome after it.
const leaseMargin = 5 * time.Second

// Options are the optional settings of an [Engine]. nil means all defaults, and
// so does the zero value of a field.
type Options struct {
	// Timeout limits the whole exchange of one attempt: name resolution,
	// connection, TLS, request, and the answer with its body.
	// Defaults to [DefaultTimeout].
	Timeout time.Duration

	// Retries are the delays between the failure of an attempt and the next
	// attempt, so that there is one more attempt than delays. They are counted
	// from when the failure is known, and are never shortened. An empty slice
	// that is not nil means one attempt and no retry.
	// Defaults to [DefaultRetries].
	Retries []time.Duration

	// Concurrency is how many deliveries are in flight in the fast bulkhead, which is
	// for requests in their first moments; see Isolation in the package's
	// documentation. Each counts from its claim until its outcome is recorded.
	// Endpoints that accepted nothing yet, or nothing since they last failed,
	// have at most half of them together.
	// Defaults to [DefaultConcurrency].
	Concurrency int

	// SlowConcurrency is how many deliveries are in flight in the slow bulkhead in
	// addition: those whose request takes longer than SlowAfter, and those to
	// endpoints that are known to be slow. Endpoints that accepted nothing yet,
	// or nothing since they last failed, have at most half of them together.
	// SlowConcurrency/PerEndpoint endpoints have to begin to hang within Timeout
	// before others wait. A waiting request costs a connection and a few
	// goroutines.
	// Defaults to four times Concurrency.
	SlowConcurrency int

	// SlowAfter is how long a request stays in the fast bulkhead.
	// Defaults to [DefaultSlowAfter].
	SlowAfter time.Duration

	// PerEndpoint is how many requests to one endpoint are in flight at most. An
	// endpoint begins with one, and earns one more with each success; a failure
	// without an answer takes it back to one.
	// Defaults to [DefaultPerEndpoint], but at most to half of Concurrency.
	PerEndpoint int

	// MaxBytes is how many bytes of payloads are in flight in both bulkheads. Until
	// the size of a payload is known, it is taken to be 1 MB, which the service
	// never exceeds; larger ones of other queues may exceed MaxBytes by what
	// they are larger. One payload is always allowed. Slow endpoints, and those
	// that accepted nothing yet or since they last failed, have at most half of
	// it together, and any endpoint about MaxBytes*PerEndpoint/SlowConcurrency.
	// Defaults to [DefaultMaxBytes].
	MaxBytes int64

	// Lease is how long a claim keeps a delivery from other processes, and so
	// how long a delivery rests after the death of its process. It must exceed
	// Timeout by 5 seconds; a third of the difference, but at most 10 seconds,
	// is the time limit for each call of the queue other than Wait.
	// Defaults to [DefaultLease], or to 30 seconds over Timeout if that is more.
	Lease time.Duration

	// PollInterval is how often the queue is asked when it does not wake the
	// engine by itself.
	// Defaults to [DefaultPollInterval].
	PollInterval time.Duration

	// MaxAnswer is how many bytes of an answer's body are read. A connection
	// whose answer is longer is closed and not used again. The first 4 KiB are
	// kept in [Attempt.Answer].
	// Defaults to [DefaultMaxAnswer].
	MaxAnswer int64

	// DrainTimeout is how long the requests in flight may go on when the
	// context ends. What is cut off then goes back to the queue and does not
	// count as an attempt. A negative one cuts at once.
	// Defaults to [DefaultDrainTimeout].
	DrainTimeout time.Duration

	// OnFailure is called when a delivery other than a [Replay] failed for the
	// last time, after the queue recorded that: at least once, by one of the
	// processes that share the queue, and again when the process died or lost
	// the queue before that was noted. When it returns an error, it is called
	// again for the same delivery once Lease is over, and a minute later at most.
	//
	// It is called by up to eight goroutines at once and holds no slot. ctx ends
	// after two thirds of Lease, or 10 seconds after the end of the context of
	// Run; OnFailure has to return then.
	// Defaults to none: the notices stay in the queue.
	OnFailure func(ctx context.Context, f Failure) error

	// Metrics gets the figures of the engine.
	// Defaults to none.
	Metrics Metrics

	// Tracer makes spans of attempts, and adds what names them to the requests.
	// Defaults to none: no header of a trace is sent.
	Tracer Tracer

	// Transport sends the requests in place of the engine's own. It must not
	// follow redirects, and must heed the request's context until the answer's
	// body ends, as [net/http.Transport] does. Errors that wrap
	// [ErrAddressRefused] are reported as [ClassRefused].
	// Defaults to a transport of its own that uses no proxy, does not
	// decompress, asks for TLS 1.2 or later and reads at most 16 KiB of headers.
	Transport http.RoundTripper

	// Control is called by the default Transport before each connection, with
	// the address after name resolution, like [net.Dialer.Control]. An error
	// keeps it from connecting. It cannot be combined with Transport.
	// Defaults to that of an [egress.Policy] without exceptions: public
	// addresses only.
	Control func(network, address string, c syscall.RawConn) error

	// Logger gets a line for each failed call of the queue, for each outcome
	// that the queue did not accept or that was given up, for each notice that
	// was not given, and once a minute for each endpoint with an Err.
	// Defaults to [slog.Default] at the time of [New].
	Logger *slog.Logger

	// Now is the clock for due times, leases and durations. Time limits and
	// waiting use the real clock.
	// Defaults to [time.Now].
	Now func() time.Time

	// UserAgent is the User-Agent header, printable ASCII.
	// Defaults to [DefaultUserAgent].
	UserAgent string
}

// withDefaults returns the options filled in. It does not change opts.
func withDefaults(opts *Options) (Options, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := o.validate(); err != nil {
		return Options{}, err
	}
	fill(&o.Timeout, DefaultTimeout)
	fill(&o.Concurrency, DefaultConcurrency)
	fill(&o.SlowConcurrency, 4*o.Concurrency)
	fill(&o.SlowAfter, DefaultSlowAfter)
	fill(&o.PerEndpoint, max(1, min(DefaultPerEndpoint, o.Concurrency/2)))
	fill(&o.MaxBytes, DefaultMaxBytes)
	fill(&o.Lease, max(DefaultLease, o.Timeout+30*time.Second))
	fill(&o.PollInterval, DefaultPollInterval)
	fill(&o.MaxAnswer, DefaultMaxAnswer)
	fill(&o.DrainTimeout, DefaultDrainTimeout)
	fill(&o.UserAgent, DefaultUserAgent)
	fill(&o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Retries == nil {
		o.Retries = DefaultRetries()
	}
	if o.Control == nil {
		policy, err := egress.New(nil)
		if err != nil {
			return Options{}, fmt.Errorf("delivery: %w", err)
		}
		o.Control = policy.Control
	}
	o.Retries = slices.Clone(o.Retries)
	if o.Lease-o.Timeout < leaseMargin {
		return Options{}, fmt.Errorf("delivery: Lease (%v) must exceed Timeout (%v) by %v", o.Lease, o.Timeout, leaseMargin)
	}
	return o, nil
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate refuses what no default can repair.
func (o *Options) validate() error {
	for _, option := range []struct {
		name  string
		value int64
	}{
		{"Timeout", int64(o.Timeout)}, {"Lease", int64(o.Lease)}, {"PollInterval", int64(o.PollInterval)},
		{"Concurrency", int64(o.Concurrency)}, {"SlowConcurrency", int64(o.SlowConcurrency)},
		{"SlowAfter", int64(o.SlowAfter)}, {"MaxBytes", o.MaxBytes}, {"PerEndpoint", int64(o.PerEndpoint)},
		{"MaxAnswer", o.MaxAnswer},
	} {
		if option.value < 0 {
			return fmt.Errorf("delivery: %s is negative", option.name)
		}
	}
	switch {
	case slices.ContainsFunc(o.Retries, func(d time.Duration) bool { return d < 0 }):
		return errors.New("delivery: a delay in Retries is negative")
	case o.Transport != nil && o.Control != nil:
		return errors.New("delivery: Control has no effect on a given Transport")
	// Otherwise every single request would fail.
	case strings.ContainsFunc(o.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("delivery: UserAgent is not printable ASCII")
	}
	return nil
}

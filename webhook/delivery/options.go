package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/formsvc/toolkit/webhook/egress"
)

// The defaults of [Options].
const (
	// DefaultTimeout is the webhook timeout in the service's documentation, under Limits.
	DefaultTimeout = 30 * time.Second
	// DefaultConcurrency suits receivers that reply at once, and leaves room for outcomes that are
	// being recorded.
	DefaultConcurrency = 512
	// DefaultPerEndpoint is the largest concurrency window. A smaller one can't keep a receiver
	// busy while the queue commits.
	DefaultPerEndpoint = 64
	// DefaultMaxBytes is in bytes: 67 payloads of the largest size.
	DefaultMaxBytes = 64 << 20
	// DefaultLease leaves half of the time for the queue.
	DefaultLease = time.Minute
	// DefaultPollInterval is the longest delay of a retry.
	DefaultPollInterval = time.Second
	// DefaultDrainTimeout fits, with the time to record outcomes, into the 30 seconds that process
	// managers usually allow.
	DefaultDrainTimeout = 10 * time.Second
)

const (
	// slowAfter is long for a receiver that replies before it does its work.
	slowAfter = time.Second
	// maxAnswer is how much of a response's body is read, in bytes. Reading that much is cheaper
	// than a new connection.
	maxAnswer = 64 << 10
	userAgent = "formsvc-webhooks/1"
)

// DefaultRetries returns the delays in the service's documentation, under Delivery rules: 1, 5 and
// 30 minutes.
func DefaultRetries() []time.Duration {
	return []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute}
}

// leaseMargin is how much Lease must exceed Timeout: time to load the payload before the request,
// and to record the outcome after it.
const leaseMargin = 5 * time.Second

// Options are the optional settings of an [Engine]. nil means all defaults; the zero value of a
// field means its default.
type Options struct {
	// Timeout limits the whole exchange of one attempt: name resolution, connection, TLS, request,
	// and the response with its body. Defaults to [DefaultTimeout].
	Timeout time.Duration

	// Retries are the delays between the failure of an attempt and the next attempt, so there is
	// one more attempt than delays. A delay begins when the failure is known, and is never
	// shortened. An empty slice that isn't nil means one attempt and no retry. Defaults to
	// [DefaultRetries].
	Retries []time.Duration

	// Concurrency is the number of slots of the fast bulkhead, see Isolation at [Engine]. A delivery
	// has a slot from its claim until its outcome is recorded. The slow bulkhead has four times as
	// many slots in addition: others wait only if 4*Concurrency/PerEndpoint endpoints begin to hang
	// within Timeout. A waiting request costs a connection and a few goroutines. Defaults to
	// [DefaultConcurrency].
	Concurrency int

	// PerEndpoint is the largest concurrency window of an endpoint. Defaults to
	// [DefaultPerEndpoint], but at most to half of Concurrency.
	PerEndpoint int

	// MaxBytes limits the payloads in flight in both bulkheads, in bytes. Until its size is known,
	// a payload counts as 1 MB, which the service never exceeds. Larger payloads of other queues
	// may exceed MaxBytes by the difference. One payload is always allowed. Slow endpoints and
	// probes have at most half of it together, any endpoint about MaxBytes*PerEndpoint/Concurrency/4.
	// Defaults to [DefaultMaxBytes].
	MaxBytes int64

	// Lease is how long a claim reserves a delivery, and so how long a delivery waits if its
	// process dies. It must exceed Timeout by 5 seconds. The time limit for each call of the queue,
	// except Wait, is a third of the difference, at most 10 seconds. Defaults to [DefaultLease], or
	// to Timeout plus 30 seconds if that is more.
	Lease time.Duration

	// PollInterval is how often the engine asks a queue that doesn't wake it. Defaults to
	// [DefaultPollInterval].
	PollInterval time.Duration

	// DrainTimeout is how long requests in flight may continue after the context ended. Requests
	// that are canceled then return to the queue and don't count as attempts. A negative value
	// cancels at once. Defaults to [DefaultDrainTimeout].
	DrainTimeout time.Duration

	// OnFailure is called after the queue has recorded that a delivery, except a [Replay], failed
	// permanently. One of the processes that share the queue calls it at least once. If it returns
	// an error, it is called again for the same delivery after Lease, at most a minute later. Up to
	// eight goroutines call it at once. ctx ends after two thirds of Lease, or 10 seconds after the
	// end of the context of Run; OnFailure must return then.
	// Defaults to none: notices stay in the queue.
	OnFailure func(ctx context.Context, f Failure) error

	// Mail sends the mail of a delivery to an endpoint whose URL is a mailto: address, and returns once a server has accepted it.
	// It is called concurrently. ctx ends after Timeout. A mail is sent again if the process dies before
	// the outcome is recorded. Defaults to none: such deliveries fail with [ClassMail].
	Mail func(ctx context.Context, m Mail) error

	// Metrics receives the engine's metrics. Defaults to none.
	Metrics Metrics

	// Tracer creates spans for attempts, and adds trace headers to requests. Defaults to none: no
	// trace headers are sent.
	Tracer Tracer

	// Transport sends the requests. It must not follow redirects, and must respect the request's
	// context until the response's body ends, as [net/http.Transport] does. Errors that wrap
	// [ErrAddressRefused] are reported as [ClassRefused]. Defaults to a transport without proxy and
	// decompression that requires TLS 1.2 or later and reads at most 16 KiB of headers.
	Transport http.RoundTripper

	// Control is called by the default Transport before each connection, with the address after
	// name resolution, like [net.Dialer.Control]. An error prevents the connection. It can't be
	// combined with Transport. Defaults to the Control of an [egress.Policy] without exceptions:
	// public addresses only.
	Control func(network, address string, c syscall.RawConn) error

	// Logger gets a line for each failed call of the queue, each refused or dropped outcome, and
	// each notice that was not given. Once a minute it gets a line for each endpoint with an Err.
	// Defaults to [slog.Default] at the time of [New].
	Logger *slog.Logger

	// Now is the clock for due times, leases and durations. Time limits and pauses use the real
	// clock. Defaults to [time.Now].
	Now func() time.Time
}

// withDefaults returns the options with defaults filled in. It doesn't change opts.
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
	fill(&o.PerEndpoint, max(1, min(DefaultPerEndpoint, o.Concurrency/2)))
	fill(&o.MaxBytes, DefaultMaxBytes)
	fill(&o.Lease, max(DefaultLease, o.Timeout+30*time.Second))
	fill(&o.PollInterval, DefaultPollInterval)
	fill(&o.DrainTimeout, DefaultDrainTimeout)
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

// validate refuses options that are out of range.
func (o *Options) validate() error {
	for _, option := range []struct {
		name  string
		value int64
	}{
		{"Timeout", int64(o.Timeout)}, {"Lease", int64(o.Lease)}, {"PollInterval", int64(o.PollInterval)},
		{"Concurrency", int64(o.Concurrency)}, {"MaxBytes", o.MaxBytes}, {"PerEndpoint", int64(o.PerEndpoint)},
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
	}
	return nil
}

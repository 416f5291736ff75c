package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// An Engine sends the due deliveries of a [Queue]. Create it with [New]. It is safe for concurrent
// use, and any number of engines, in one process or in many, may share a queue. Each call of Run or
// RunOnce has its own scheduler, which learns which endpoints work.
//
// # Isolation
//
// Slow, dead or hostile receivers don't affect the others, because of these mechanisms:
//
//   - Two bulkheads. A request that takes longer than a second moves from the fast to the slow
//     one. Until its endpoint responds within a second again, it gets room in the slow bulkhead
//     only.
//   - A concurrency window for each endpoint. It begins with one, grows by one with each success up
//     to [Options.PerEndpoint], and is one again after a failure without a response. A response
//     with a status other than 2xx doesn't change it.
//   - A circuit breaker for each endpoint. After a failure without a response, nothing is sent to
//     the endpoint until the requests in flight have ended. Then one probe is sent at a time until
//     one succeeds. New endpoints are probed, too. All probes together have at most half of each
//     bulkhead and of the memory.
//   - A limit for each endpoint: it never has more slots of a bulkhead than are left free, nor more
//     than a small part of the memory. So others find room even if many working endpoints begin to
//     hang at once. The room is used up only if as many endpoints hang as there are slots, and for
//     longer than a second only if they fill the slow bulkhead.
//   - Deficit round robin. Room goes to the account with the fewest deliveries in flight in the
//     bulkhead, and within it to the endpoint with the fewest; equals take turns.
//
// For each endpoint, first attempts go before retries, and retries before replays. Every fourth
// claim reverses that order, so that nothing waits forever. For a working, fast endpoint,
// deliveries are prefetched about 50 ms before there is room to send them, at most Concurrency in
// all. They return to the queue if the endpoint fails or becomes slow, and when the context ends.
//
// What a run learns isn't stored. New endpoints share their half of the room with all endpoints
// that don't work. If hundreds hang at a start, the first request of a working one can wait for
// several times [Options.Timeout]. A larger Concurrency shortens that wait.
//
// # Clocks
//
// Times in the queue come from [Options.Now]. The clocks of processes that share a queue must not
// differ by more than [Options.Lease] minus [Options.Timeout]; if they do, more deliveries are
// duplicated, but none is lost.
type Engine struct {
	queue        Queue
	opts         Options // filled in
	transport    http.RoundTripper
	own          *http.Transport // nil if Options.Transport is set
	storeTimeout time.Duration   // for one call of the queue
}

// New returns an engine that delivers from q. It doesn't start it: call Run. It fails if q is nil
// or an option is out of range.
func New(q Queue, opts *Options) (*Engine, error) {
	if q == nil {
		return nil, errors.New("delivery: no queue")
	}
	o, err := withDefaults(opts)
	if err != nil {
		return nil, err
	}
	e := &Engine{queue: q, opts: o, transport: o.Transport}
	if e.transport == nil {
		e.own = newTransport(&o)
		e.transport = e.own
	}
	// One third each for claiming, loading and recording.
	e.storeTimeout = min(10*time.Second, (o.Lease-o.Timeout)/3)
	return e, nil
}

// Run delivers until ctx ends, and then returns nil. It logs errors of the queue and retries after
// a pause of at most 5 seconds; they never end it.
//
// When ctx ends, Run claims nothing more and gives no further notices. Requests in flight may
// continue for [Options.DrainTimeout]; then they are canceled and return to the queue. Outcomes are
// recorded within another 10 seconds, which is also the time limit for running calls of
// [Options.OnFailure]. Deliveries whose outcome the queue hasn't accepted by then are sent again
// after their lease. No goroutine of the engine survives Run, provided that queue, transport and
// OnFailure respect their contexts.
func (e *Engine) Run(ctx context.Context) error {
	r := e.start(ctx)
	defer r.stop()
	if r.opts.OnFailure != nil {
		r.helpers.Go(func() { r.notify(ctx) })
	}
	var claiming, loading backoff
	for ctx.Err() == nil {
		if r.loaded.Swap(false) {
			loading.reset()
		}
		if err := r.loadFailure(); err != nil {
			r.rest(ctx, &loading, err)
			continue
		}
		more, err := r.step(ctx)
		if err == nil && !more {
			err = r.wait(ctx)
		}
		if err != nil {
			r.rest(ctx, &claiming, err)
			continue
		}
		claiming.reset()
	}
	return nil
}

// rest logs an error of the queue and pauses.
func (r *run) rest(ctx context.Context, b *backoff, err error) {
	pause := b.next()
	r.log(ctx, slog.LevelError, "webhook queue failed", slog.Any("error", err), slog.Duration("pause", pause))
	r.queues = nil
	sleep(ctx, pause)
}

// RunOnce sends deliveries until nothing more is due, gives the notices that are due, and returns
// the number of recorded attempts, successful or not. It is for tests and for programs that are
// started on a schedule. Retries that are due later stay in the queue.
//
// It fails with the first error of the queue, except of Finish, after the requests in flight are
// done. If ctx ends first, it drains like [Engine.Run] and fails with the error of ctx. It also
// fails if an outcome could not be recorded during its lease, or within 10 seconds after one of the
// other errors.
func (e *Engine) RunOnce(ctx context.Context) (attempts int, err error) {
	r := e.start(ctx)
	r.monitor.wakeIdle = true
	err = r.once(ctx)
	if err == nil && r.opts.OnFailure != nil {
		err = r.giveNotices(ctx)
	}
	r.stop()
	if lost := r.lost.Load(); lost > 0 {
		err = errors.Join(err, fmt.Errorf("delivery: %d outcomes were not recorded", lost))
	}
	return int(r.recorded.Load()), err
}

func (r *run) once(ctx context.Context) error {
	for {
		idle, before := false, r.claimed
		r.monitor.read(func(s *schedule.Scheduler) { idle = s.IsIdle() })
		if idle {
			r.queues = nil // ask the queue again before concluding that nothing is ready
		}
		for more := true; more; {
			err := r.loadFailure()
			if err == nil {
				more, err = r.step(ctx)
			}
			if err != nil {
				return err
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case idle && r.claimed == before:
			return nil
		}
		_ = r.monitor.await(ctx, func(ctx context.Context, _ bool) error {
			<-ctx.Done()
			return nil
		})
	}
}

func (e *Engine) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	e.opts.Logger.LogAttrs(ctx, level, text, attrs...) //nolint:sloglint // callers pass constants
}

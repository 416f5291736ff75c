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
// RunOnce has its own scheduler, which learns which endpoints work; nothing of that is stored.
//
// # Isolation
//
// A slow, dead or hostile receiver doesn't delay the others. Each endpoint has a concurrency window,
// which grows with its successes, and a circuit breaker, which sends it one probe at a time after a
// failure without a response. Requests that take longer than a second, and those to an endpoint whose
// last one did, have a bulkhead of their own. Accounts take turns, and so do the endpoints of each. No
// endpoint gets more slots of a bulkhead than it leaves free. Probes have half of the room at most:
// if hundreds of endpoints hang at a start, the first request of a working one can wait for several
// times [Options.Timeout]. A larger Concurrency shortens that wait.
//
// For each endpoint, first attempts go before retries, and retries before replays. Every fourth
// claim reverses that order, so that nothing waits forever. For a working, fast endpoint, at most
// Concurrency deliveries are prefetched about 50 ms before there is room to send them.
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
// continue for [Options.DrainTimeout]; then they are canceled and return to the queue. Outcomes and
// running calls of [Options.OnFailure] have another 10 seconds. Deliveries whose outcome the queue
// hasn't accepted by then are sent again after their lease. No goroutine of the engine survives Run,
// provided that queue, transport and OnFailure respect their contexts.
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
// fails if an outcome could not be recorded.
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

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

// An Engine delivers what is due in a [Queue]. Make it with [New]. It is safe
// for concurrent use, and any number of engines, in one process or in many, may
// share a queue. Each call of Run or RunOnce has a scheduler of its own, which
// learns by itself which endpoints work.
//
// # Isolation
//
// A receiver that is slow, dead or hostile does not hurt those that work. What
// keeps them apart:
//
//   - Two bulkheads. A request that takes longer than [Options.SlowAfter] moves from
//     the fast to the slow one. Until its endpoint answers within SlowAfter again,
//     it gets room in the slow bulkhead only.
//   - A concurrency window for each endpoint. It begins with one, grows by one with
//     each success up to [Options.PerEndpoint], and is one again after a failure
//     without an answer. An answer with another status than 2xx leaves it as it is.
//   - A circuit breaker for each endpoint. After a failure without an answer, nothing
//     is sent to it until the requests in flight have ended, and then one probe at a
//     time until one succeeds. Probes, and new endpoints are probed too, have at most
//     half of each bulkhead and of the memory together.
//   - No endpoint may have more slots of a bulkhead than it leaves free, nor more
//     than a small part of the memory. So others find room even when many that
//     worked so far begin to hang at once: it is gone only when as many hang as there
//     are slots, and for longer than SlowAfter only when they fill the slow bulkhead.
//   - Deficit round robin. Room goes to the account that has least in flight in the
//     bulkhead, and within it to such an endpoint; equals take turns.
//
// For each endpoint, first attempts go before retries and these before replays,
// except that every fourth claim takes them the other way round, so that nothing
// waits for ever. For one that works and answers fast, deliveries are prefetched,
// some 50 ms before their requests have room and at most Concurrency in all. They go
// back to the queue when it fails or becomes slow, and when the context ends.
//
// What a run learns is not stored. So there is one wait that nothing spares: new
// endpoints share their half with all others that do not work, and after a start
// beside hundreds that hang, the first request of one can wait for several times
// [Options.Timeout]. A larger SlowConcurrency makes that shorter.
//
// # Clocks
//
// Times in the queue are those of [Options.Now]. Processes that share a queue
// must agree on the time to within [Options.Lease] less [Options.Timeout]; if
// they do not, deliveries are repeated more often, but none is lost.
type Engine struct {
	queue        Queue
	opts         Options // filled in
	transport    http.RoundTripper
	own          *http.Transport // nil when the transport was given
	storeTimeout time.Duration   // for one call of the queue
}

// New returns an engine that delivers from q. It starts nothing. It fails when
// q is nil or an option is out of range.
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

// Run delivers until ctx ends, and then returns nil: that is the normal end.
// Errors of the queue are logged and never end it; it tries again after a pause
// of at most 5 seconds.
//
// When ctx ends, nothing more is claimed and no further notice is given. Requests
// in flight may go on for [Options.DrainTimeout], then they are cut off and go
// back to the queue. What came of them is recorded within another 10 seconds,
// and that is also how long a call of [Options.OnFailure] may take then; what the
// queue does not take by the end of it is given up and delivered again after its
// lease. No goroutine of the engine survives Run, provided that queue, transport
// and OnFailure heed their contexts.
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

// RunOnce delivers what is due until nothing more is, gives the notices that are
// due, and returns how many attempts were recorded, successful or not. It is for
// tests and for programs that are started on a schedule. Retries that are due
// later stay in the queue.
//
// It fails, after the requests in flight are done, with the first error of the
// queue other than of Finish; with the error of ctx if that ends first, draining
// like [Engine.Run]; and when an outcome was not recorded while its lease lasted,
// or within 10 seconds after either of the other errors.
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
			r.queues = nil // nothing is ready only if the queue says so now
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

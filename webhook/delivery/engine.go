package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// An Engine delivers what is due in a [Queue]. Make it with [New]. It is safe
// for concurrent use, and any number of engines, in one process or in many, may
// share a queue. Each call of Run or RunOnce has slots of its own, and learns by
// itself which endpoints are healthy.
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
	r.agenda = nil
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
	r.slots.wakeIdle = true
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
		idle, before := r.slots.isIdle(), r.claimed
		if idle {
			r.agenda = nil // nothing is ready only if the queue says so now
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
		_ = r.slots.await(ctx, func(ctx context.Context, _ bool) error {
			<-ctx.Done()
			return nil
		})
	}
}

func (e *Engine) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	e.opts.Logger.LogAttrs(ctx, level, text, attrs...) //nolint:sloglint // callers pass constants
}

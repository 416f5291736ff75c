package delivery

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// flushTimeout is how long outcomes are offered to the queue after the last request of a run, and
// how long a notice may take after the end of a run.
const flushTimeout = 10 * time.Second

// A run is one call of Run or RunOnce. Its contexts outlive the caller's for the time of the
// shutdown, and end with the run.
type run struct {
	*Engine
	monitor monitor
	results results

	// For the claim loop only.
	queues        *schedule.Queues     // the ready endpoints; nil if they must be read
	endpoints     map[string]*Endpoint // of the queues
	refreshedAt   time.Time            // when the queues were read
	claimedAt     time.Time            // when deliveries were last claimed
	batch         int                  // how many deliveries that claim returned
	claimed       int                  // all deliveries so far
	claimedBefore int                  // claimed when the queues were refreshed
	blocked       blocked

	work    context.Context // for calls of the queue and OnFailure
	stopAll context.CancelFunc
	sending context.Context // for requests; ends before work
	cut     context.CancelFunc

	sends   sync.WaitGroup // requests in flight and prefetched deliveries
	helpers sync.WaitGroup // everything else

	failures  chan struct{}         // has a token when notices may be due
	loadError atomic.Pointer[error] // of Payloads, until the claim loop sees it
	loaded    atomic.Bool           // Payloads succeeded, until the claim loop sees it
	alive     atomic.Bool           // the queue has worked since the last failure to record
	recorded  atomic.Int64          // attempts that the queue accepted
	lost      atomic.Int64          // dropped outcomes
}

// A job is one claim that is being processed.
type job struct {
	claim     Claim
	endpoint  Endpoint
	scheduled *schedule.Delivery
	until     time.Time   // the lease's end
	body      []byte      // dropped once sent
	trace     string      // see Payload.TraceParent
	traced    http.Header // headers that the tracer adds to the request
	missing   bool        // the queue had no body
	outcome   Outcome     // set before the job goes to the results
}

func (e *Engine) start(ctx context.Context) *run {
	r := &run{Engine: e, failures: make(chan struct{}, 1)}
	r.monitor.s, r.monitor.metrics = schedule.New(schedule.Limits{
		Fast: e.opts.Concurrency, Slow: 4 * e.opts.Concurrency, Window: e.opts.PerEndpoint, Bytes: e.opts.MaxBytes, Remember: 10_000,
	}), e.opts.Metrics
	r.results.more = make(chan struct{}, 1)
	r.work, r.stopAll = context.WithCancel(context.WithoutCancel(ctx))
	r.sending, r.cut = context.WithCancel(r.work)
	r.helpers.Go(r.record)
	// The drain time begins at the end of ctx, whatever the run is doing then.
	r.helpers.Go(func() {
		select {
		case <-ctx.Done():
			r.change((*schedule.Scheduler).Stop)
			sleep(r.sending, max(0, e.opts.DrainTimeout))
			r.cut()
		case <-r.sending.Done():
		}
	})
	return r
}

// stop waits for the requests in flight and for their outcomes. Nothing may be claimed anymore.
func (r *run) stop() {
	r.change((*schedule.Scheduler).Stop)
	r.sends.Wait()
	r.cut()
	r.results.close()
	timer := time.AfterFunc(flushTimeout, r.stopAll)
	r.helpers.Wait()
	timer.Stop()
	r.stopAll()
	r.countBlocked(0)
	if r.own != nil {
		r.own.CloseIdleConnections()
	}
}

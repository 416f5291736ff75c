package delivery

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// flushTimeout is how long outcomes are offered to the queue after the last
// request of a run ended, and how long a notice may take after a run was ended.
const flushTimeout = 10 * time.Second

// A run is one call of Run or RunOnce. Its contexts outlive the caller's by the
// time of the shutdown, and end with the run.
type run struct {
	*Engine
	monitor monitor
	results results

	// For the claim loop only.
	queues        *schedule.Queues     // what is ready; nil when that is to be asked
	endpoints     map[string]*Endpoint // of the queues
	refreshedAt   time.Time            // when it was asked
	claimedAt     time.Time            // when something was claimed
	batch         int                  // how many deliveries that brought
	claimed       int                  // deliveries, in all
	claimedBefore int                  // claimed when the queues were refreshed
	blocked       blocked

	work    context.Context // for calls of the queue and OnFailure
	stopAll context.CancelFunc
	sending context.Context // for requests; ends before work
	cut     context.CancelFunc

	sends   sync.WaitGroup // requests in flight, and what was prefetched
	helpers sync.WaitGroup // everything else

	failures  chan struct{}         // has a token when notices may be due
	loadError atomic.Pointer[error] // of Payloads, until the claim loop sees it
	loaded    atomic.Bool           // Payloads worked, until the claim loop sees it
	alive     atomic.Bool           // the queue did something since the last failure to record
	recorded  atomic.Int64          // attempts that the queue accepted
	lost      atomic.Int64          // outcomes given up
}

// A job is one claim on its way.
type job struct {
	claim     Claim
	endpoint  Endpoint
	scheduled *schedule.Delivery
	until     time.Time   // the lease's end
	body      []byte      // dropped once sent
	trace     string      // see Payload.TraceParent
	traced    http.Header // what the tracer adds to the request
	missing   bool        // the queue had no body
	outcome   Outcome     // written before the job goes to the results
}

func (e *Engine) start(ctx context.Context) *run {
	r := &run{Engine: e, failures: make(chan struct{}, 1)}
	r.monitor.s, r.monitor.metrics = schedule.New(schedule.Limits{
		Fast: e.opts.Concurrency, Slow: e.opts.SlowConcurrency, Window: e.opts.PerEndpoint, Bytes: e.opts.MaxBytes, Remember: 10_000,
	}), e.opts.Metrics
	r.results.more = make(chan struct{}, 1)
	r.work, r.stopAll = context.WithCancel(context.WithoutCancel(ctx))
	r.sending, r.cut = context.WithCancel(r.work)
	r.helpers.Go(r.record)
	// The drain time counts from the end of ctx, wherever the run is then.
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

// stop waits for the requests in flight and for their outcomes. Nothing may be
// claimed any more.
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

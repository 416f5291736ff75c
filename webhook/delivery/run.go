package delivery

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// flushTimeout is how long outcomes are offered to the queue after the last
// request of a run ended.
const flushTimeout = 10 * time.Second

// A run is one call of Run or RunOnce. Its contexts outlive the caller's by the
// time of the shutdown, and end with the run.
type run struct {
	*Engine
	slots slots
	box   outbox
	after string // the endpoint served last; for the claim loop only

	work    context.Context // for calls of the queue and OnFailure
	stopAll context.CancelFunc
	sending context.Context // for requests; ends before work
	cut     context.CancelFunc

	sends   sync.WaitGroup // requests in flight
	helpers sync.WaitGroup // everything else

	loadError atomic.Pointer[error] // of Payloads, until the claim loop sees it
	loaded    atomic.Bool           // Payloads worked, until the claim loop sees it
	alive     atomic.Bool           // the queue did something since the last failure to record
	recorded  atomic.Int64          // attempts that the queue accepted
	lost      atomic.Int64          // outcomes given up
}

// A job is one claim on its way.
type job struct {
	claim   Claim
	until   time.Time // the lease's end
	body    []byte    // dropped once sent
	missing bool      // the queue had no body
	outcome Outcome   // written before the job goes to the outbox
	sent    bool      // guarded by slots.mu
}

func (e *Engine) start(ctx context.Context) *run {
	r := &run{Engine: e}
	r.slots.total, r.slots.perEndpoint = e.opts.Concurrency, e.opts.PerEndpoint
	r.slots.endpoints = make(map[string]load)
	r.box.more = make(chan struct{}, 1)
	r.work, r.stopAll = context.WithCancel(context.WithoutCancel(ctx))
	r.sending, r.cut = context.WithCancel(r.work)
	r.helpers.Go(r.record)
	// The drain time counts from the end of ctx, wherever the run is then.
	r.helpers.Go(func() {
		select {
		case <-ctx.Done():
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
	r.sends.Wait()
	r.cut()
	r.box.close()
	timer := time.AfterFunc(flushTimeout, r.stopAll)
	r.helpers.Wait()
	timer.Stop()
	r.stopAll()
	if r.own != nil {
		r.own.CloseIdleConnections()
	}
}

// claim leases what there is room for and starts its way. It returns how many
// claims it got.
//
// The calls use the run's context and not ctx: a claim that was cut off may
// still have been made, and would rest until its lease ends.
func (r *run) claim(ctx context.Context, room room) (int, error) {
	if room.free <= 0 || ctx.Err() != nil {
		return 0, nil
	}
	now := r.opts.Now()
	call, cancel := context.WithTimeout(r.work, r.storeTimeout)
	defer cancel()
	claims, err := r.queue.Claim(call, ClaimRequest{
		Now: now, Lease: r.opts.Lease,
		Limit: room.free, PerEndpoint: r.opts.PerEndpoint, Busy: room.busy, After: r.after,
	})
	if err != nil {
		return 0, fmt.Errorf("delivery: claim: %w", err)
	}
	r.alive.Store(true)
	if len(claims) == 0 {
		return 0, nil
	}
	r.after = claims[len(claims)-1].Endpoint.ID
	jobs := make([]*job, len(claims))
	for i, c := range claims {
		jobs[i] = &job{claim: c, until: now.Add(r.opts.Lease)}
		r.slots.take(jobs[i])
	}
	r.slots.filled(room, claims)
	// The next claim need not wait for the payloads of this one.
	r.sends.Go(func() { r.dispatch(ctx, jobs) })
	return len(jobs), nil
}

// dispatch loads the payloads of claimed jobs and starts their requests, or
// releases them when it cannot or ctx has ended.
func (r *run) dispatch(ctx context.Context, jobs []*job) {
	err := r.load(jobs)
	if err == nil && ctx.Err() == nil {
		r.loaded.Store(true)
		for _, j := range jobs {
			r.sends.Go(func() { r.deliver(j) })
		}
		return
	}
	if err != nil {
		// Left for the claim loop: claiming has to pause as well.
		r.loadError.Store(&err)
		r.slots.nudge()
	}
	for _, j := range jobs {
		j.outcome = r.released(j)
		r.done(j)
	}
}

// loadFailure returns the error of Payloads since the last call, or nil.
func (r *run) loadFailure() error {
	if err := r.loadError.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// load gives the jobs their bodies. Jobs of the same event share one.
func (r *run) load(jobs []*job) error {
	seen := make(map[string]bool, len(jobs))
	events := make([]string, 0, len(jobs))
	for _, j := range jobs {
		if id := j.claim.EventID; !seen[id] {
			seen[id] = true
			events = append(events, id)
		}
	}
	call, cancel := context.WithTimeout(r.work, r.storeTimeout)
	defer cancel()
	payloads, err := r.queue.Payloads(call, events)
	if err != nil {
		return fmt.Errorf("delivery: payloads: %w", err)
	}
	for _, j := range jobs {
		body, ok := payloads[j.claim.EventID]
		j.body, j.missing = body, !ok
	}
	return nil
}

func (r *run) released(j *job) Outcome {
	return Outcome{ID: j.claim.ID, Lease: j.claim.Lease, Result: Released, Due: r.opts.Now()}
}

// done hands a job with an outcome over to be recorded.
func (r *run) done(j *job) {
	j.body = nil
	// A notice may take long: its endpoint stays busy until it is given.
	if j.outcome.Result != Failed {
		r.slots.sent(j)
	}
	r.box.put(j)
}

package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// maxBatch is how many outcomes are recorded by one call.
const maxBatch = 256

// results are jobs whose outcomes must be recorded. They need no limit, since each of them holds a
// slot.
type results struct {
	mu      sync.Mutex
	waiting []*job
	closed  bool
	more    chan struct{} // has a token after waiting or closed changed
}

func (b *results) put(jobs ...*job) {
	b.mu.Lock()
	b.waiting = append(b.waiting, jobs...)
	b.mu.Unlock()
	b.signal()
}

// close makes take report that no more jobs will be put.
func (b *results) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.signal()
}

func (b *results) signal() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// take returns up to n jobs, and whether the results are closed.
func (b *results) take(n int) (batch []*job, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, len(b.waiting))
	batch = b.waiting[:n:n]
	b.waiting = slices.Clone(b.waiting[n:]) // doesn't keep batch alive
	return batch, b.closed
}

// record records outcomes until the results are closed and all are settled. Outcomes that arrive
// during one call form the next batch, so a single outcome never waits for others.
func (r *run) record() {
	late := backlog{size: maxBatch}
	for {
		fresh, closed := r.results.take(maxBatch)
		r.finish(&late, fresh, true)
		again := late.due(r.work)
		if r.finish(&late, again, false) && len(again) > 0 {
			late.progress()
		}
		if len(fresh)+len(again) > 0 {
			continue
		}
		if closed && len(late.jobs) == 0 {
			return
		}
		late.wait(r.work, r.results.more)
	}
}

// finish offers a batch to the queue and settles it. If that fails, it adds the batch to late, drops the
// outcomes there that can't be retried, and returns false.
func (r *run) finish(late *backlog, batch []*job, fresh bool) bool {
	if len(batch) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(r.work, r.storeTimeout)
	defer cancel()
	outcomes := make([]Outcome, len(batch))
	for i, j := range batch {
		outcomes[i] = j.outcome
	}
	accepted, err := r.queue.Finish(ctx, outcomes)
	if err != nil {
		late.add(batch, fresh, r.alive.Swap(false))
		late.jobs = r.keep(late.jobs)
		r.log(r.work, slog.LevelError, "webhook outcomes not recorded",
			slog.Any("error", fmt.Errorf("delivery: finish: %w", err)), slog.Int("outcomes", len(batch)))
		return false
	}
	r.alive.Store(true)
	for i, j := range batch {
		if i < len(accepted) && accepted[i] {
			r.settle(j)
		} else {
			r.log(r.work, slog.LevelWarn, "webhook outcome not accepted: the claim passed on or the delivery is gone", about(j)...)
			r.free(j)
		}
	}
	return true
}

// settle applies the effects of a recorded outcome.
func (r *run) settle(j *job) {
	if j.outcome.Result != Released {
		r.recorded.Add(1)
	}
	if j.outcome.Result == Failed && j.claim.Kind != Replay {
		r.expectNotice()
	}
	r.free(j)
}

// keep returns the jobs to retry, and drops the others: those whose lease ended, or all of them at
// the end of the shutdown. The queue leases the dropped ones again.
func (r *run) keep(jobs []*job) []*job {
	var kept []*job
	now := r.opts.Now()
	for _, j := range jobs {
		if r.work.Err() == nil && now.Before(j.until) {
			kept = append(kept, j)
			continue
		}
		r.lost.Add(1)
		r.log(r.work, slog.LevelError, "webhook outcome given up", about(j)...)
		r.free(j)
	}
	return kept
}

func about(j *job) []slog.Attr {
	return []slog.Attr{
		slog.String("delivery", j.claim.ID),
		slog.String("endpoint", j.claim.Endpoint),
		slog.Int("attempt", j.claim.Attempts+1),
	}
}

// free frees the slot and bytes of a job.
func (r *run) free(j *job) {
	r.change(func(s *schedule.Scheduler) schedule.Effect { return s.Settle(j.scheduled) })
}

package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// readyTTL is how long the list of ready endpoints is reused while there is more work than room.
// Asking the queue after each request would cost more than claiming.
const readyTTL = 5 * time.Millisecond

// After a claim of at least lingerFrom deliveries, the next claim is delayed so that it gets
// several, too: many small claims and outcomes would cost the queue more than the deliveries.
// Single deliveries are claimed at once.
const (
	linger     = 5 * time.Millisecond
	lingerFrom = 4
)

// step claims once, after refreshing the ready endpoints if necessary, and reports whether to claim
// again at once.
func (r *run) step(ctx context.Context) (more bool, err error) {
	if r.queues == nil || time.Since(r.refreshedAt) >= readyTTL {
		if err := r.refresh(ctx); err != nil || ctx.Err() != nil {
			return false, err
		}
	}
	shares := r.monitor.plan(r.queues)
	if len(shares) == 0 {
		return false, nil
	}
	if err := r.claim(ctx, shares); err != nil {
		r.monitor.do(func(s *schedule.Scheduler) (none schedule.Effect) { s.EndPlan(r.queues, false); return })
		return false, err
	}
	return true, nil
}

// refresh asks the queue for the ready endpoints.
func (r *run) refresh(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, r.storeTimeout)
	defer cancel()
	ready, err := r.queue.Ready(call, r.opts.Now())
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delivery: ready: %w", err)
	}
	r.alive.Store(true)
	r.checkBlocked(ctx, ready)
	r.queues, r.endpoints = schedule.NewQueues(len(ready)), make(map[string]*Endpoint, len(ready))
	for i := range ready {
		if e := &ready[i]; e.Err == nil {
			r.queues.Add(e.ID, e.Account)
			r.endpoints[e.ID] = e
		}
	}
	r.refreshedAt, r.claimedBefore = time.Now(), r.claimed
	return nil
}

// claim leases the planned deliveries and starts to send them.
//
// The call uses the run's context, not ctx: a canceled claim may still have committed, and its
// deliveries would wait until the lease ends.
func (r *run) claim(ctx context.Context, shares []Share) error {
	now := r.opts.Now()
	r.claimedAt = time.Now()
	call, cancel := context.WithTimeout(r.work, r.storeTimeout)
	defer cancel()
	claims, err := r.queue.Claim(call, ClaimRequest{Now: now, Lease: r.opts.Lease, Shares: shares})
	if err != nil {
		return fmt.Errorf("delivery: claim: %w", err)
	}
	r.alive.Store(true)
	r.claimed += len(claims)
	r.batch = len(claims)
	jobs := make([]*job, len(claims))
	r.monitor.do(func(s *schedule.Scheduler) (none schedule.Effect) {
		for i, c := range claims {
			j := &job{claim: c, scheduled: s.Claimed(r.queues, c.Endpoint, int64(c.Size)), until: now.Add(r.opts.Lease)}
			jobs[i], j.scheduled.Job = j, j
		}
		s.EndPlan(r.queues, true)
		return none
	})
	for _, j := range jobs {
		if e := r.endpoints[j.claim.Endpoint]; e != nil {
			j.endpoint = *e
		}
	}
	if len(jobs) > 0 {
		// The next claim needn't wait for the payloads of this one.
		r.sends.Go(func() { r.dispatch(ctx, jobs) })
	}
	return nil
}

// wait waits until another claim may get deliveries.
func (r *run) wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil // r.queues may be nil
	}
	var some, soon bool
	r.monitor.read(func(s *schedule.Scheduler) { some, soon = s.Remaining(r.queues) })
	fruitless := r.claimed == r.claimedBefore
	return r.monitor.await(ctx, func(ctx context.Context, full bool) error {
		switch {
		case full:
			<-ctx.Done()
			return nil
		case soon && !fruitless:
			// Most likely, room becomes free first.
			sleep(ctx, readyTTL)
			return nil
		case some && fruitless && !sleep(ctx, readyTTL):
			// Without this pause, events for an endpoint without room would cause endless queries.
			return nil
		}
		r.queues = nil // Wait may consume the signal for new deliveries
		err := r.queue.Wait(ctx, r.opts.PollInterval)
		if ctx.Err() != nil {
			return nil
		}
		if rest := linger - time.Since(r.claimedAt); err == nil && rest > 0 && r.batch >= lingerFrom {
			sleep(ctx, rest)
		}
		return err
	})
}

// blocked has the number of endpoints with an Err, and when they were last logged.
type blocked struct {
	count int
	at    time.Time
}

// warnAgain is the time between two warnings about the same endpoint.
const warnAgain = time.Minute

// checkBlocked counts the endpoints with an Err, and logs them if there are more or after a minute.
func (r *run) checkBlocked(ctx context.Context, ready []Endpoint) {
	var blocked []Endpoint
	for i := range ready {
		if ready[i].Err != nil {
			blocked = append(blocked, ready[i])
		}
	}
	if len(blocked) > r.blocked.count || len(blocked) > 0 && time.Since(r.blocked.at) >= warnAgain {
		r.blocked.at = time.Now()
		for i := range blocked {
			r.log(ctx, slog.LevelWarn, "webhook endpoint cannot be sent to: its deliveries wait",
				slog.String("endpoint", blocked[i].ID), slog.Any("error", blocked[i].Err))
		}
	}
	r.countBlocked(len(blocked))
}

func (r *run) countBlocked(count int) {
	if delta := count - r.blocked.count; delta != 0 && r.opts.Metrics.Blocked != nil {
		r.opts.Metrics.Blocked(delta)
	}
	r.blocked.count = count
}

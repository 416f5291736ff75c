package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// readyTTL is how long the endpoints that were ready are taken for those that are,
// while there is more to do than room for it. Asking the queue each time a
// request ends would cost more than claiming.
const readyTTL = 5 * time.Millisecond

// Where at least lingerFrom deliveries come with a claim, the next one lingers, so
// that it brings several, too: claims and outcomes of a few each would cost the
// queue more than the deliveries. Those that come one by one are claimed at once.
const (
	linger     = 5 * time.Millisecond
	lingerFrom = 4
)

// step claims once, after asking what is ready if need be, and reports whether
// to claim again at once.
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

// refresh asks the queue what is ready.
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

// claim leases what was planned and starts its way.
//
// The call uses the run's context and not ctx: a claim that was cut off may
// still have been made, and would rest until its lease ends.
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
		// The next claim need not wait for the payloads of this one.
		r.sends.Go(func() { r.dispatch(ctx, jobs) })
	}
	return nil
}

// wait returns when another claim may bring something.
func (r *run) wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil // and perhaps there are no queues
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
			// Room comes sooner than anything else.
			sleep(ctx, readyTTL)
			return nil
		case some && fruitless && !sleep(ctx, readyTTL):
			// Without that pause, events for an endpoint that has no room would
			// have the queue asked without end.
			return nil
		}
		r.queues = nil // Wait may swallow the news of what arrives meanwhile
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

// blocked is what is known of endpoints with an Err: when each was warned of.
type blocked struct {
	count  int
	warned map[string]time.Time
}

// warnAgain is the time between two warnings of the same endpoint.
const warnAgain = time.Minute

// checkBlocked warns of the endpoints that cannot be sent to, and counts them.
func (r *run) checkBlocked(ctx context.Context, ready []Endpoint) {
	b, now, count := &r.blocked, time.Now(), 0
	for i := range ready {
		e := &ready[i]
		if e.Err == nil {
			continue
		}
		count++
		if at, ok := b.warned[e.ID]; ok && now.Sub(at) < warnAgain {
			continue
		}
		if b.warned == nil {
			b.warned = make(map[string]time.Time)
		}
		b.warned[e.ID] = now
		r.log(ctx, slog.LevelWarn, "webhook endpoint cannot be sent to: its deliveries wait",
			slog.String("endpoint", e.ID), slog.Any("error", e.Err))
	}
	for id, at := range b.warned {
		if now.Sub(at) >= warnAgain {
			delete(b.warned, id)
		}
	}
	r.countBlocked(count)
}

func (r *run) countBlocked(count int) {
	if delta := count - r.blocked.count; delta != 0 && r.opts.Metrics != nil {
		r.opts.Metrics.Blocked(delta)
	}
	r.blocked.count = count
}

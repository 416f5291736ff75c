package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// glance is how long the endpoints that were ready are taken for those that are,
// while there is more to do than room for it. Asking the queue each time a
// request ends would cost more than claiming.
const glance = 5 * time.Millisecond

// Where several deliveries come with each claim, what arrives within gather is
// claimed together: claims and outcomes of a few each would cost the queue more
// than the deliveries. Those that come one by one are claimed at once.
const (
	gather  = 5 * time.Millisecond
	several = 4
)

// step claims once, after asking what is ready if need be, and reports whether
// to claim again at once.
func (r *run) step(ctx context.Context) (more bool, err error) {
	if r.agenda == nil || time.Since(r.looked) >= glance {
		if err := r.look(ctx); err != nil || ctx.Err() != nil {
			return false, err
		}
	}
	shares := r.slots.plan(r.agenda)
	if len(shares) == 0 {
		return false, nil
	}
	if err := r.claim(ctx, shares); err != nil {
		r.slots.cancel(r.agenda, shares)
		return false, err
	}
	return true, nil
}

// look asks the queue what is ready.
func (r *run) look(ctx context.Context) error {
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
	r.agenda, r.looked, r.before = newAgenda(ready), time.Now(), r.claimed
	return nil
}

// claim leases what was planned and starts its way.
//
// The call uses the run's context and not ctx: a claim that was cut off may
// still have been made, and would rest until its lease ends.
func (r *run) claim(ctx context.Context, shares []Share) error {
	now := r.opts.Now()
	r.asked = time.Now()
	call, cancel := context.WithTimeout(r.work, r.storeTimeout)
	defer cancel()
	claims, err := r.queue.Claim(call, ClaimRequest{Now: now, Lease: r.opts.Lease, Shares: shares})
	if err != nil {
		return fmt.Errorf("delivery: claim: %w", err)
	}
	r.alive.Store(true)
	r.claimed += len(claims)
	r.brought = len(claims)
	jobs := make([]*job, 0, len(claims))
	for i, s := range r.slots.take(r.agenda, shares, claims) {
		j := &job{claim: claims[i], slot: s, until: now.Add(r.opts.Lease)}
		s.job = j
		if it := r.agenda.items[claims[i].Endpoint]; it != nil {
			j.endpoint = it.Endpoint
		}
		if s.refused {
			r.release(j)
			continue
		}
		jobs = append(jobs, j)
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
		return nil // and perhaps there is no agenda
	}
	some, soon := r.slots.more(r.agenda)
	fruitless := r.claimed == r.before
	return r.slots.await(ctx, func(ctx context.Context, full bool) error {
		switch {
		case full:
			<-ctx.Done()
			return nil
		case soon && !fruitless:
			// Room comes sooner than anything else.
			sleep(ctx, glance)
			return nil
		case some && fruitless && !sleep(ctx, glance):
			// Without that pause, events for an endpoint that has no room would
			// have the queue asked without end.
			return nil
		}
		r.agenda = nil // Wait may swallow the news of what arrives meanwhile
		err := r.queue.Wait(ctx, r.opts.PollInterval)
		if ctx.Err() != nil {
			return nil
		}
		if rest := gather - time.Since(r.asked); err == nil && rest > 0 && r.brought >= several {
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

// unblock takes the run's part out of the figures.
func (r *run) unblock() { r.countBlocked(0) }

func (r *run) countBlocked(count int) {
	if delta := count - r.blocked.count; delta != 0 && r.opts.Metrics != nil {
		r.opts.Metrics.Blocked(delta)
	}
	r.blocked.count = count
}

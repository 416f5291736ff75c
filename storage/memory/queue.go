package memory

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Ready implements [delivery.Queue].
func (s *Store) Ready(ctx context.Context, now time.Time) ([]delivery.Endpoint, error) {
	return listed(ctx, s, &s.endpoints, func(e *endpoint) bool { return e.next(now, false) != nil },
		func(e *endpoint) delivery.Endpoint { return e.address(now) })
}

// address returns where and how to send to the endpoint at that time.
func (e *endpoint) address(now time.Time) delivery.Endpoint {
	to := delivery.Endpoint{ID: string(e.ID), Account: string(e.AccountID), URL: e.URL, Secret: e.Secret}
	if now.Before(e.PreviousUntil) {
		to.Previous = e.Previous
	}
	for _, h := range e.Headers {
		if to.Headers == nil {
			to.Headers = make(http.Header)
		}
		to.Headers.Add(h.Name, h.Value)
	}
	return to
}

// Claim implements [delivery.Queue].
func (s *Store) Claim(ctx context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	return locked(ctx, s, func() ([]delivery.Claim, error) {
		var claims []delivery.Claim
		for _, share := range req.Shares {
			e, err := s.endpoints.get(formsvc.ID(share.Endpoint))
			if err != nil {
				continue
			}
			for range share.N {
				d := e.next(req.Now, share.LateFirst)
				if d == nil {
					break
				}
				claims = append(claims, e.claim(d, req.Now, req.Now.Add(req.Lease)))
			}
		}
		return claims, nil
	})
}

// next returns the next delivery to attempt, or nil if none is due. A delivery is due
// again when its lease ends.
func (e *endpoint) next(now time.Time, lateFirst bool) *queued {
	order := [kinds]delivery.Kind{delivery.First, delivery.Retry, delivery.Replay}
	if lateFirst {
		order = [kinds]delivery.Kind{delivery.Retry, delivery.Replay, delivery.First}
	}
	for _, kind := range order {
		if e.Disabled && kind != delivery.Replay {
			continue
		}
		if waiting := e.waiting[kind]; len(waiting) > 0 && !waiting[0].DueAt.After(now) {
			return waiting[0]
		}
	}
	return nil
}

// claim leases a delivery.
func (e *endpoint) claim(d *queued, now, until time.Time) delivery.Claim {
	e.unwait(d)
	d.SendingSince = kept(now)
	d.lease++
	e.wait(d, until)
	return delivery.Claim{
		ID: string(d.ID), Lease: d.lease, EventID: string(d.EventID), Event: string(d.Event), Endpoint: string(e.ID),
		Kind: d.kind, Attempts: d.Attempts, Size: d.size,
	}
}

// Payloads implements [delivery.Queue].
func (s *Store) Payloads(ctx context.Context, events []string) (map[string]delivery.Payload, error) {
	return locked(ctx, s, func() (map[string]delivery.Payload, error) {
		payloads := make(map[string]delivery.Payload, len(events))
		for _, id := range events {
			if e := s.events[formsvc.ID(id)]; e != nil {
				payloads[id] = delivery.Payload{Body: bytes.Clone(e.Payload), TraceParent: e.TraceParent}
			}
		}
		return payloads, nil
	})
}

// Finish implements [delivery.Queue].
func (s *Store) Finish(ctx context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	return locked(ctx, s, func() ([]bool, error) {
		accepted := make([]bool, len(outcomes))
		for i := range outcomes {
			accepted[i] = s.finish(&outcomes[i])
		}
		return accepted, nil
	})
}

// finish records one outcome, unless its claim is no longer current.
func (s *Store) finish(o *delivery.Outcome) bool {
	e, err := s.endpoints.get(formsvc.ID(o.Endpoint))
	if err != nil {
		return false
	}
	d, err := e.deliveries.get(formsvc.ID(o.ID))
	if err != nil || !d.claimed() || d.lease != o.Lease {
		return false
	}
	e.unwait(d)
	d.SendingSince = time.Time{}
	if o.Result == delivery.Released {
		e.wait(d, o.Due)
		return true
	}
	d.record(&o.Attempt)
	switch o.Result {
	case delivery.Delivered:
		d.State = formsvc.DeliveryDelivered
	case delivery.Postponed:
		d.kind = delivery.Retry
		e.wait(d, o.Due)
	case delivery.Failed:
		d.State = formsvc.DeliveryFailed
		if d.kind != delivery.Replay {
			s.notice(e, d)
		}
	}
	return true
}

// record adds an attempt to the log.
func (d *queued) record(a *delivery.Attempt) {
	d.Attempts++
	d.UpdatedAt = kept(a.StartedAt.Add(a.Duration))
	d.Log = append(d.Log, formsvc.Attempt{
		Number: a.Number, StartedAt: kept(a.StartedAt), Duration: a.Duration.Truncate(time.Microsecond),
		Status: a.Status, Error: a.Error, Answer: bytes.Clone(a.Answer),
	})
	d.Log = slices.Clone(d.Log[max(len(d.Log)-formsvc.KeptAttempts, 0):])
}

// Wait implements [delivery.Queue].
func (s *Store) Wait(ctx context.Context, d time.Duration) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.wake:
		return nil
	case <-timer.C:
		return nil
	case <-s.closed:
		return formsvc.ErrStoreClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wakeUp ends the Wait under way, or else the next one.
func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // there is a token already
	}
}

package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Claim implements [delivery.Queue]. It goes round the endpoints, in the order
// of their IDs from the one after req.After, and takes one delivery of each, the
// one that has been due longest, until there is no room or nothing due.
func (s *Store) Claim(ctx context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var claims []delivery.Claim
	endpoints := s.endpointsAfter(formsvc.ID(req.After))
	for round := 0; len(endpoints) > 0; round++ {
		var served []*endpoint
		for _, e := range endpoints {
			if len(claims) >= req.Limit {
				return claims, nil
			}
			if req.Busy[string(e.ID)]+round >= req.PerEndpoint || !e.due(req.Now) {
				continue
			}
			claims = append(claims, e.claim(req.Now.Add(req.Lease)))
			served = append(served, e)
		}
		endpoints = served
	}
	return claims, nil
}

// endpointsAfter returns all endpoints by ID, starting after the one with that
// ID and going round. The caller holds s.mu.
func (s *Store) endpointsAfter(id formsvc.ID) []*endpoint {
	ids := s.endpoints.ids
	at, found := slices.BinarySearch(ids, id)
	if found {
		at++
	}
	endpoints := make([]*endpoint, 0, len(ids))
	for _, id := range slices.Concat(ids[at:], ids[:at]) {
		endpoints = append(endpoints, s.endpoints.rows[id])
	}
	return endpoints
}

// due reports whether the endpoint has a delivery to be attempted now. The end
// of a lease makes one due again.
func (e *endpoint) due(now time.Time) bool {
	return !e.Disabled && len(e.waiting) > 0 && !e.waiting[0].DueAt.After(now)
}

// claim leases the delivery that has been due longest.
func (e *endpoint) claim(until time.Time) delivery.Claim {
	d := e.waiting[0]
	e.unwait(d)
	d.claimed = true
	d.lease++
	e.wait(d, until)
	return delivery.Claim{
		ID: string(d.ID), Lease: d.lease, EventID: string(d.EventID), Event: string(d.eventType), Attempts: d.Attempts,
		Endpoint: delivery.Endpoint{ID: string(e.ID), Account: string(e.AccountID), URL: e.URL, Secret: e.Secret},
	}
}

// wait puts a pending delivery where it belongs by its new due time.
func (e *endpoint) wait(d *queued, due time.Time) {
	d.DueAt = kept(due)
	at, _ := slices.BinarySearchFunc(e.waiting, d, byDue)
	e.waiting = slices.Insert(e.waiting, at, d)
}

// unwait undoes wait.
func (e *endpoint) unwait(d *queued) {
	at, _ := slices.BinarySearchFunc(e.waiting, d, byDue)
	e.waiting = slices.Delete(e.waiting, at, at+1)
}

func byDue(a, b *queued) int {
	return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
}

// Payloads implements [delivery.Queue].
func (s *Store) Payloads(ctx context.Context, events []string) (map[string][]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	payloads := make(map[string][]byte, len(events))
	for _, id := range events {
		if e, ok := s.events[formsvc.ID(id)]; ok {
			payloads[id] = bytes.Clone(e.Payload)
		}
	}
	return payloads, nil
}

// Finish implements [delivery.Queue].
func (s *Store) Finish(ctx context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	accepted := make([]bool, len(outcomes))
	for i := range outcomes {
		accepted[i] = s.finish(&outcomes[i])
	}
	return accepted, nil
}

// finish records one outcome, unless the claim is no longer the caller's.
func (s *Store) finish(o *delivery.Outcome) bool {
	e, d := s.delivery(formsvc.ID(o.ID))
	if d == nil || !d.claimed || d.lease != o.Lease {
		return false
	}
	e.unwait(d)
	d.claimed = false
	if o.Result != delivery.Released {
		d.Attempts++
		d.UpdatedAt = kept(o.Attempt.StartedAt.Add(o.Attempt.Duration))
	}
	switch o.Result {
	case delivery.Delivered:
		d.State = formsvc.DeliveryDelivered
	case delivery.Failed:
		d.State = formsvc.DeliveryFailed
	case delivery.Retry, delivery.Released:
		e.wait(d, o.Due)
	}
	return true
}

// delivery returns a delivery and where it goes, or nil.
func (s *Store) delivery(id formsvc.ID) (*endpoint, *queued) {
	for _, e := range s.endpoints.rows {
		if d, ok := e.deliveries.get(id); ok {
			return e, d
		}
	}
	return nil, nil
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

// wakeUp ends a Wait: the one in progress, or else the next.
func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // the token is there already
	}
}

package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Deliveries implements [formsvc.Store].
func (s *Store) Deliveries(ctx context.Context, q formsvc.DeliveryQuery) (formsvc.Page[formsvc.Delivery], error) {
	key := formsvc.WebhookKey{AccountID: q.AccountID, ID: q.WebhookID}
	return read(ctx, s, s.endpointOrNone, key, func(e *endpoint) formsvc.Page[formsvc.Delivery] {
		match := func(d *queued) bool { return q.State == "" || d.State == q.State }
		return page(&e.deliveries, q.Page, q.NoTotal, match, copyDelivery)
	})
}

// endpointOrNone is endpoint for lists: those of an unknown webhook are empty.
func (s *Store) endpointOrNone(key formsvc.WebhookKey) (*endpoint, error) {
	if e, err := s.endpoint(key); err == nil {
		return e, nil
	}
	return new(endpoint), nil
}

// Delivery implements [formsvc.Store].
func (s *Store) Delivery(ctx context.Context, key formsvc.DeliveryKey) (formsvc.Delivery, error) {
	return read(ctx, s, s.delivery, key, copyDelivery)
}

// Redeliver implements [formsvc.Store].
func (s *Store) Redeliver(
	ctx context.Context, key formsvc.DeliveryKey, at time.Time, decide func(*formsvc.Delivery) (formsvc.Change, error),
) (after formsvc.Delivery, err error) {
	var d *queued
	err = s.write(ctx, func() (change formsvc.Change, err error) {
		d, err = s.delivery(key)
		switch {
		case err != nil:
			return change, err
		case d.claimed() && d.DueAt.After(at):
			return change, formsvc.ErrConflict
		}
		after = copyDelivery(d)
		after.State, after.DueAt = formsvc.DeliveryPending, kept(at)
		return decided(&after, decide)
	}, func() error {
		s.endpoints.rows[d.WebhookID].redeliver(d, at)
		s.wakeUp()
		after = copyDelivery(d)
		return nil
	})
	return after, err
}

// redeliver makes a delivery due at that time. A finished one becomes a replay.
func (e *endpoint) redeliver(d *queued, at time.Time) {
	if d.State == formsvc.DeliveryPending {
		e.unwait(d)
	} else {
		d.State, d.kind = formsvc.DeliveryPending, delivery.Replay
	}
	e.wait(d, at)
}

// hasResponse reports whether the response of a delivery exists, or isn't needed. The caller holds s.mu.
func (s *Store) hasResponse(d *queued) bool {
	if d.Test || slices.Contains(formsvc.WithoutAnswers(), d.Event) {
		return true
	}
	e := s.events[d.EventID]
	if e == nil {
		return false
	}
	_, err := s.response(formsvc.ResponseKey{AccountID: e.AccountID, CampaignID: e.CampaignID, ID: e.ResponseID})
	return err == nil
}

// RedeliverFailed implements [formsvc.Store].
func (s *Store) RedeliverFailed(
	ctx context.Context, q formsvc.RedeliverQuery, decide func(int) (formsvc.Change, error),
) (int, error) {
	var e *endpoint
	var failed []*queued
	err := s.write(ctx, func() (change formsvc.Change, err error) {
		if e, err = s.endpoint(q.Key); err != nil {
			return change, err
		}
		for _, d := range e.deliveries.rows {
			if d.State == formsvc.DeliveryFailed && !d.UpdatedAt.Before(q.Since) && !d.UpdatedAt.After(q.Until) && s.hasResponse(d) {
				failed = append(failed, d)
			}
		}
		slices.SortFunc(failed, func(a, b *queued) int {
			return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID))
		})
		failed = failed[:min(len(failed), max(q.Limit, 0))]
		return decided(len(failed), decide)
	}, func() error {
		for i, d := range failed {
			e.redeliver(d, q.At.Add(time.Duration(i)*q.Pace))
			s.wakeUp()
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(failed), nil
}

// QueueStats implements [formsvc.Store].
func (s *Store) QueueStats(ctx context.Context, now time.Time, limit int64) (formsvc.QueueStats, error) {
	return locked(ctx, s, func() (formsvc.QueueStats, error) {
		var stats formsvc.QueueStats
		for _, e := range s.endpoints.rows {
			for _, waiting := range e.waiting {
				stats.Pending += int64(len(waiting))
				if e.Disabled || len(waiting) == 0 {
					continue
				}
				due := waiting[0].DueAt
				if !due.After(now) && (stats.OldestDue.IsZero() || due.Before(stats.OldestDue)) {
					stats.OldestDue = due
				}
			}
		}
		stats.Pending = max(min(stats.Pending, limit), 0)
		return stats, nil
	})
}

// Waiting implements [formsvc.Store].
func (s *Store) Waiting(ctx context.Context, key formsvc.WebhookKey, limit int64) (int64, error) {
	return read(ctx, s, s.endpointOrNone, key, func(e *endpoint) (n int64) {
		for _, waiting := range e.waiting {
			n += int64(len(waiting))
		}
		return max(min(n, limit), 0)
	})
}

// delivery returns a delivery of an account. The caller holds s.mu.
func (s *Store) delivery(key formsvc.DeliveryKey) (*queued, error) {
	for _, e := range s.endpoints.rows {
		if d, err := e.deliveries.get(key.ID); err == nil && e.AccountID == key.AccountID {
			return d, nil
		}
	}
	return nil, formsvc.ErrNotFound
}

// put queues a delivery of the event, due when the event was created.
func (e *endpoint) put(event *formsvc.Event) {
	d := &queued{size: len(event.Payload), Delivery: event.Delivery(e.ID)}
	if event.Test && !event.Retried {
		d.kind = delivery.Replay
	}
	d.CreatedAt = kept(d.CreatedAt)
	if e.deliveries.add(d.ID, d) == nil {
		e.wait(d, event.CreatedAt)
	}
}

// wait files a pending delivery by its new due time.
func (e *endpoint) wait(d *queued, due time.Time) {
	d.DueAt = kept(due)
	waiting := e.waiting[d.kind]
	at, _ := slices.BinarySearchFunc(waiting, d, byDue)
	e.waiting[d.kind] = slices.Insert(waiting, at, d)
}

// unwait undoes wait.
func (e *endpoint) unwait(d *queued) {
	waiting := e.waiting[d.kind]
	at, _ := slices.BinarySearchFunc(waiting, d, byDue)
	e.waiting[d.kind] = slices.Delete(waiting, at, at+1)
}

func byDue(a, b *queued) int {
	return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
}

func copyDelivery(row *queued) formsvc.Delivery { return copyOf(&row.Delivery) }

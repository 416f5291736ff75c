package memory

import (
	"bytes"
	"context"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateWebhook implements [formsvc.WebhookStore].
func (s *Store) CreateWebhook(ctx context.Context, w formsvc.Webhook, limit int) error {
	texts := []string{string(w.ID), string(w.AccountID), string(w.CampaignID), w.URL, w.Secret}
	for _, t := range w.Events {
		texts = append(texts, string(t))
	}
	if err := formsvc.CheckText(texts...); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	a, err := s.account(w.AccountID)
	if err != nil {
		return err
	}
	if len(a.webhooks.ids) >= limit {
		return formsvc.ErrLimit
	}
	row := &endpoint{Webhook: copyWebhook(&w)}
	if err := s.endpoints.add(w.ID, row); err != nil {
		return err
	}
	return a.webhooks.add(w.ID, row)
}

// Webhook implements [formsvc.WebhookStore].
func (s *Store) Webhook(ctx context.Context, key formsvc.WebhookKey) (formsvc.Webhook, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Webhook{}, err
	}
	defer s.mu.Unlock()
	e, err := s.endpoint(key)
	if err != nil {
		return formsvc.Webhook{}, err
	}
	return copyWebhook(&e.Webhook), nil
}

// Webhooks implements [formsvc.WebhookStore].
func (s *Store) Webhooks(ctx context.Context, id formsvc.ID) ([]formsvc.Webhook, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	a, err := s.account(id)
	if err != nil {
		return nil, nil // an unknown account has none
	}
	return list(&a.webhooks, func(e *endpoint) formsvc.Webhook { return copyWebhook(&e.Webhook) }), nil
}

// DeleteWebhook implements [formsvc.WebhookStore].
func (s *Store) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, err := s.endpoint(key); err != nil {
		return err
	}
	s.accounts.rows[key.AccountID].webhooks.remove(key.ID)
	s.endpoints.remove(key.ID) // its deliveries go with it
	return nil
}

// Deliveries implements [formsvc.WebhookStore].
func (s *Store) Deliveries(ctx context.Context, q formsvc.DeliveryQuery) (formsvc.Page[formsvc.Delivery], error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Page[formsvc.Delivery]{}, err
	}
	defer s.mu.Unlock()
	e, err := s.endpoint(formsvc.WebhookKey{AccountID: q.AccountID, ID: q.WebhookID})
	if err != nil {
		return formsvc.Page[formsvc.Delivery]{}, nil // an unknown webhook has none
	}
	return page(&e.deliveries, q.Page, nil, func(d *queued) formsvc.Delivery { return d.Delivery }), nil
}

// endpoint returns a webhook of an account. The caller holds s.mu.
func (s *Store) endpoint(key formsvc.WebhookKey) (*endpoint, error) {
	a, err := s.account(key.AccountID)
	if err != nil {
		return nil, err
	}
	e, ok := a.webhooks.get(key.ID)
	if !ok {
		return nil, formsvc.ErrNotFound
	}
	return e, nil
}

// checkEvents returns an error when the events can't be raised: a unit asks
// before it changes anything. The caller holds s.mu.
func (s *Store) checkEvents(events []formsvc.Event) error {
	seen := make(map[formsvc.ID]bool, len(events))
	for i := range events {
		e := &events[i]
		err := formsvc.CheckText(
			string(e.ID), string(e.AccountID), string(e.CampaignID), string(e.ResponseID), string(e.Type))
		if err != nil {
			return err
		}
		if _, taken := s.events[e.ID]; taken || seen[e.ID] {
			return formsvc.ErrConflict
		}
		seen[e.ID] = true
	}
	return nil
}

// raise keeps the events and puts a delivery of each, due at once, in the queue
// of every webhook that listens. The caller holds s.mu.
func (s *Store) raise(events []formsvc.Event) {
	for _, e := range events {
		e.CreatedAt = kept(e.CreatedAt)
		e.Payload = bytes.Clone(e.Payload)
		s.events[e.ID] = e
		a, err := s.account(e.AccountID)
		if err != nil {
			continue
		}
		for _, to := range a.webhooks.rows {
			if to.Listens(&e) {
				to.put(&e)
				s.wakeUp()
			}
		}
	}
}

// put queues a delivery of the event.
func (e *endpoint) put(event *formsvc.Event) {
	d := &queued{eventType: event.Type, Delivery: formsvc.Delivery{
		ID: formsvc.DeliveryID(event.ID, e.ID), AccountID: e.AccountID, WebhookID: e.ID, EventID: event.ID,
		State: formsvc.DeliveryPending, CreatedAt: event.CreatedAt,
	}}
	if e.deliveries.add(d.ID, d) == nil {
		e.wait(d, event.CreatedAt)
	}
}

func copyWebhook(webhook *formsvc.Webhook) formsvc.Webhook {
	w := *webhook
	w.Events = slices.Clone(w.Events)
	w.CreatedAt, w.UpdatedAt = kept(w.CreatedAt), kept(w.UpdatedAt)
	return w
}

package memory

import (
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateWebhook implements [formsvc.Store].
func (s *Store) CreateWebhook(
	ctx context.Context, w formsvc.Webhook, limit int, decide func(*formsvc.Webhook, bool) (formsvc.Change, error),
) (formsvc.Webhook, bool, error) {
	w, err := stored(&w)
	if err != nil {
		return formsvc.Webhook{}, false, err
	}
	var row *endpoint
	var found formsvc.Webhook
	created := false
	err = s.write(ctx, func() (change formsvc.Change, err error) {
		if _, err := s.account(w.AccountID); err != nil {
			return change, err
		}
		row, err = s.endpoints.first(func(e *endpoint) bool { return sameSubscription(&e.Webhook, &w) })
		if created = err != nil; created {
			row = &endpoint{Webhook: w}
		}
		if created && s.endpoints.count(func(e *endpoint) bool { return e.AccountID == w.AccountID }) >= limit {
			return change, formsvc.ErrLimit
		}
		found = row.copy()
		if decide == nil {
			return change, nil
		}
		return decide(new(row.copy()), created)
	}, func() error {
		if !created {
			return nil
		}
		return s.endpoints.add(w.ID, row)
	})
	return found, created, err
}

// sameSubscription reports whether two webhooks are of one account and have the same address and
// the same events, in any order.
func sameSubscription(a, b *formsvc.Webhook) bool {
	return a.AccountID == b.AccountID && a.URL == b.URL && a.CampaignID == b.CampaignID && slices.Equal(
		slices.Sorted(slices.Values(a.Events)), slices.Sorted(slices.Values(b.Events)))
}

// UpdateWebhook implements [formsvc.Store].
func (s *Store) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (w formsvc.Webhook, err error) {
	var e *endpoint
	err = s.write(ctx, func() (change formsvc.Change, err error) {
		if e, err = s.endpoint(key); err != nil {
			return change, err
		}
		w = e.copy()
		if change, err = decide(&w); err == nil {
			w, err = stored(&w)
		}
		return change, err
	}, func() error {
		if w.Version != e.Version {
			e.Webhook = w
		}
		w = e.copy()
		return nil
	})
	if err != nil {
		return formsvc.Webhook{}, err
	}
	return w, nil
}

// Webhook implements [formsvc.Store].
func (s *Store) Webhook(ctx context.Context, key formsvc.WebhookKey) (formsvc.Webhook, error) {
	return read(ctx, s, s.endpoint, key, (*endpoint).copy)
}

// Webhooks implements [formsvc.Store].
func (s *Store) Webhooks(ctx context.Context, id formsvc.ID) ([]formsvc.Webhook, error) {
	return listed(ctx, s, &s.endpoints, func(e *endpoint) bool { return e.AccountID == id }, (*endpoint).copy)
}

// DueSummaries implements [formsvc.Store].
func (s *Store) DueSummaries(ctx context.Context, now time.Time, limit int) ([]formsvc.Webhook, error) {
	due, err := listed(ctx, s, &s.endpoints, func(e *endpoint) bool {
		next := e.Mail.NextAt
		return !e.Disabled && e.Mail.Daily && !next.IsZero() && !next.After(now)
	}, (*endpoint).copy)
	return due[:min(len(due), max(limit, 0))], err
}

// DeleteWebhook implements [formsvc.Store].
func (s *Store) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey, change formsvc.Change) error {
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.endpoint(key)
		return change, err
	}, func() error {
		s.endpoints.remove(key.ID) // deliveries and the digest are deleted with it, its notices with their events
		return nil
	})
}

// endpoint returns a webhook of an account. The caller holds s.mu.
func (s *Store) endpoint(key formsvc.WebhookKey) (*endpoint, error) {
	return s.endpoints.first(func(e *endpoint) bool { return e.ID == key.ID && e.AccountID == key.AccountID })
}

func (e *endpoint) copy() formsvc.Webhook { return copyOf(&e.Webhook) }

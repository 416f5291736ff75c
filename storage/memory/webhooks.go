package memory

import (
	"context"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateWebhook implements [formsvc.Store].
func (s *Store) CreateWebhook(
	ctx context.Context, w formsvc.Webhook, limit int, decide func(*formsvc.Webhook, bool) (formsvc.Change, error),
) (formsvc.Webhook, bool, error) {
	if err := checkWebhook(&w); err != nil {
		return formsvc.Webhook{}, false, err
	}
	var row *endpoint
	var stored formsvc.Webhook
	created := false
	err := s.write(ctx, func() (change formsvc.Change, err error) {
		a, err := s.account(w.AccountID)
		if err != nil {
			return change, err
		}
		row, err = a.webhooks.first(func(e *endpoint) bool { return sameSubscription(&e.Webhook, &w) })
		if created = err != nil; created {
			row = &endpoint{Webhook: copyWebhook(&w)}
		}
		if created && len(a.webhooks.ids) >= limit {
			return change, formsvc.ErrLimit
		}
		stored = row.copy()
		if decide == nil {
			return change, nil
		}
		return decide(new(row.copy()), created)
	}, func() error {
		if !created {
			return nil
		}
		if err := s.endpoints.add(w.ID, row); err != nil {
			return err
		}
		return s.accounts.rows[w.AccountID].webhooks.add(w.ID, row)
	})
	if err != nil {
		return formsvc.Webhook{}, false, err
	}
	return stored, created, nil
}

// sameSubscription reports whether two webhooks of an account have the same address and
// the same events, in any order.
func sameSubscription(a, b *formsvc.Webhook) bool {
	return a.URL == b.URL && a.CampaignID == b.CampaignID && slices.Equal(
		slices.Sorted(slices.Values(a.Events)), slices.Sorted(slices.Values(b.Events)))
}

// UpdateWebhook implements [formsvc.Store].
func (s *Store) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (formsvc.Webhook, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Webhook{}, err
	}
	defer s.mu.Unlock()
	e, err := s.endpoint(key)
	if err != nil {
		return formsvc.Webhook{}, err
	}
	w := e.copy()
	change, err := decide(&w)
	if err == nil {
		err = checkWebhook(&w)
	}
	if err == nil {
		err = s.admit(&change)
	}
	if err != nil {
		return formsvc.Webhook{}, err
	}
	s.apply(&change) // its events go by the webhook as it was
	if w.Version != e.Version {
		e.Webhook = copyWebhook(&w)
	}
	return e.copy(), nil
}

// Webhook implements [formsvc.Store].
func (s *Store) Webhook(ctx context.Context, key formsvc.WebhookKey) (formsvc.Webhook, error) {
	return read(ctx, s, s.endpoint, key, (*endpoint).copy)
}

// Webhooks implements [formsvc.Store].
func (s *Store) Webhooks(ctx context.Context, id formsvc.ID) ([]formsvc.Webhook, error) {
	return read(ctx, s, s.accountOrNone, id, func(a *account) []formsvc.Webhook { return list(&a.webhooks, (*endpoint).copy) })
}

// DeleteWebhook implements [formsvc.Store].
func (s *Store) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey, change formsvc.Change) error {
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.endpoint(key)
		return change, err
	}, func() error {
		s.accounts.rows[key.AccountID].webhooks.remove(key.ID)
		s.endpoints.remove(key.ID) // deliveries and the digest are deleted with it, its notices with their events
		return nil
	})
}

// endpoint returns a webhook of an account. The caller holds s.mu.
func (s *Store) endpoint(key formsvc.WebhookKey) (*endpoint, error) {
	a, err := s.account(key.AccountID)
	if err != nil {
		return nil, err
	}
	return a.webhooks.get(key.ID)
}

func (e *endpoint) copy() formsvc.Webhook { return copyWebhook(&e.Webhook) }

func checkWebhook(w *formsvc.Webhook) error {
	texts := []string{string(w.ID), string(w.AccountID), string(w.CampaignID), w.URL, w.Secret, w.Previous}
	for _, t := range w.Events {
		texts = append(texts, string(t))
	}
	for _, h := range w.Headers {
		texts = append(texts, h.Name, h.Value)
	}
	return formsvc.CheckText(texts...)
}

func copyWebhook(webhook *formsvc.Webhook) formsvc.Webhook {
	w := *webhook
	w.Events = slices.Clone(w.Events)
	w.Headers = slices.Clone(w.Headers)
	w.PreviousUntil, w.CreatedAt, w.UpdatedAt = kept(w.PreviousUntil), kept(w.CreatedAt), kept(w.UpdatedAt)
	return w
}

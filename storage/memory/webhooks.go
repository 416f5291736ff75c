package memory

import (
	"context"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateWebhook implements [formsvc.WebhookStore].
func (s *Store) CreateWebhook(
	ctx context.Context, w formsvc.Webhook, limit int, decide func(*formsvc.Webhook, bool) (formsvc.Change, error),
) (formsvc.Webhook, bool, error) {
	if err := checkWebhook(&w); err != nil {
		return formsvc.Webhook{}, false, err
	}
	if err := s.enter(ctx); err != nil {
		return formsvc.Webhook{}, false, err
	}
	defer s.mu.Unlock()
	change := func(stored formsvc.Webhook, created bool) (change formsvc.Change, err error) {
		if decide != nil {
			change, err = decide(&stored, created)
		}
		if err == nil {
			err = s.admit(&change)
		}
		return change, err
	}
	a, err := s.account(w.AccountID)
	if err != nil {
		return formsvc.Webhook{}, false, err
	}
	row, created := &endpoint{Webhook: copyWebhook(&w)}, true
	for _, id := range a.webhooks.ids { // oldest first
		if e := a.webhooks.rows[id]; sameSubscription(&e.Webhook, &w) {
			row, created = e, false
			break
		}
	}
	if created && len(a.webhooks.ids) >= limit {
		return formsvc.Webhook{}, false, formsvc.ErrLimit
	}
	also, err := change(copyWebhook(&row.Webhook), created)
	if err == nil && created {
		err = s.endpoints.add(w.ID, row)
	}
	if err != nil {
		return formsvc.Webhook{}, false, err
	}
	if created {
		_ = a.webhooks.add(w.ID, row) // the identifier is new
	}
	s.apply(&also)
	return copyWebhook(&row.Webhook), created, nil
}

// sameSubscription reports whether two webhooks of an account have the same address and
// the same events, in any order.
func sameSubscription(a, b *formsvc.Webhook) bool {
	return a.URL == b.URL && a.CampaignID == b.CampaignID && slices.Equal(
		slices.Sorted(slices.Values(a.Events)), slices.Sorted(slices.Values(b.Events)))
}

// UpdateWebhook implements [formsvc.WebhookStore].
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
	w := copyWebhook(&e.Webhook)
	change, err := decide(&w)
	if err != nil {
		return formsvc.Webhook{}, err
	}
	if err := checkWebhook(&w); err != nil {
		return formsvc.Webhook{}, err
	}
	if err := s.admit(&change); err != nil {
		return formsvc.Webhook{}, err
	}
	s.apply(&change)
	if w.Version != e.Version {
		e.Webhook = copyWebhook(&w)
	}
	return copyWebhook(&e.Webhook), nil
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
func (s *Store) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey, change formsvc.Change) error {
	return s.write(ctx, &change, func() error {
		_, err := s.endpoint(key)
		return err
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
	e, ok := a.webhooks.get(key.ID)
	if !ok {
		return nil, formsvc.ErrNotFound
	}
	return e, nil
}

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

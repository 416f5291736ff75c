package bunstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

type webhookRow struct {
	bun.BaseModel `bun:"table:formsvc_webhooks,alias:w"`

	ID            ID `bun:",pk"`
	AccountID     ID
	URL           string
	Events        int64
	CampaignID    ID
	PreviousUntil int64
	Sealed
	Disabled    bool
	ConfirmedAt int64
	Daily       bool
	ReplyTo     bool
	NextAt      int64
	Version     int64
	CreatedAt   int64
	UpdatedAt   int64
}

// newWebhookRow checks a webhook and returns its row.
func (s *Store) newWebhookRow(w *formsvc.Webhook) (*webhookRow, error) {
	texts := []string{w.URL, w.Secret, w.Previous}
	for _, h := range w.Headers {
		texts = append(texts, h.Name, h.Value)
	}
	// The campaign is optional.
	if err := errors.Join(checkIDs(w.ID, cmp.Or(w.CampaignID, w.ID)), formsvc.CheckText(texts...), checkTypes(w.Events...)); err != nil {
		return nil, err
	}
	sealed, err := s.seal(w)
	if err != nil {
		return nil, err
	}
	events := eventBits(w.Events)
	if w.ToSubmitters() {
		events = confirmBit
	}
	return &webhookRow{
		ID: ID(w.ID), AccountID: ID(w.AccountID), URL: w.URL, Events: events,
		CampaignID: ID(w.CampaignID), PreviousUntil: micros(w.PreviousUntil), Sealed: sealed, Disabled: w.Disabled, Version: w.Version,
		ConfirmedAt: micros(w.Mail.ConfirmedAt), Daily: w.Mail.Daily, ReplyTo: w.Mail.ReplyTo, NextAt: micros(w.Mail.NextAt),
		CreatedAt: micros(w.CreatedAt), UpdatedAt: micros(w.UpdatedAt),
	}, nil
}

// webhook returns the webhook of a row. Values that can't be opened are left empty, so
// that the webhook can be shown, deleted and given a new secret.
func (s *Store) webhook(r *webhookRow) formsvc.Webhook {
	w := formsvc.Webhook{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), URL: r.URL, CampaignID: formsvc.ID(r.CampaignID),
		PreviousUntil: fromMicros(r.PreviousUntil), Disabled: r.Disabled, Version: r.Version,
		CreatedAt: fromMicros(r.CreatedAt), UpdatedAt: fromMicros(r.UpdatedAt),
	}
	w.Mail.ConfirmedAt, w.Mail.NextAt = fromMicros(r.ConfirmedAt), fromMicros(r.NextAt)
	w.Mail.Daily, w.Mail.ReplyTo = r.Daily, r.ReplyTo
	for i, t := range webhook.KnownEventTypes() {
		if r.Events&(1<<i) != 0 || w.ToSubmitters() && t == webhook.ResponseCreated {
			w.Events = append(w.Events, t)
		}
	}
	w.Secret, w.Previous, w.Headers, _ = s.open(r.ID, &r.Sealed)
	return w
}

// CreateWebhook implements formsvc.WebhookStore.
func (s *Store) CreateWebhook(
	ctx context.Context, hook formsvc.Webhook, limit int, decide func(*formsvc.Webhook, bool) (formsvc.Change, error),
) (stored formsvc.Webhook, created bool, err error) {
	row, err := s.newWebhookRow(&hook)
	if err != nil {
		return formsvc.Webhook{}, false, err
	}
	err = s.write(ctx, ids(hook.AccountID), nil, func(ctx context.Context, c *Tx) error {
		created = false
		// The lock on the account makes concurrent creations wait for each other.
		if _, err := lockRow[accountRow](ctx, s, c, "id = ?", row.AccountID); err != nil {
			return err
		}
		var rows []webhookRow
		if err := s.build.NewSelect().Conn(c).Model(&rows).Where("account_id = ?", row.AccountID).Order("id").Scan(ctx); err != nil {
			return err
		}
		same := func(r webhookRow) bool {
			return r.URL == row.URL && r.Events == row.Events && r.CampaignID == row.CampaignID
		}
		if i := slices.IndexFunc(rows, same); i >= 0 {
			stored = s.webhook(&rows[i])
		} else if len(rows) >= limit {
			return formsvc.ErrLimit
		} else {
			stored, created = s.webhook(row), true
			if _, err := s.build.NewInsert().Conn(c).Model(row).Exec(ctx); err != nil {
				return err
			}
		}
		if decide == nil {
			return nil
		}
		given := stored
		return decided(ctx, s, c, &given, func(w *formsvc.Webhook) (formsvc.Change, error) { return decide(w, created) })
	})
	return stored, created, err
}

// UpdateWebhook implements formsvc.WebhookStore.
func (s *Store) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (formsvc.Webhook, error) {
	var hook formsvc.Webhook
	err := s.write(ctx, ids(key.AccountID, key.ID), nil, func(ctx context.Context, c *Tx) error {
		row, err := lockRow[webhookRow](ctx, s, c, "account_id = ? AND id = ?", ID(key.AccountID), ID(key.ID))
		if err != nil {
			return err
		}
		changed, change, err := s.decideWebhook(&row, decide)
		if err := cmp.Or(err, checkChange(&change)); err != nil {
			return err
		}
		if hook = s.webhook(changed); changed.Version != row.Version {
			if _, err := s.build.NewUpdate().Conn(c).Model(changed).ExcludeColumn("id", "account_id", "created_at").WherePK().Exec(ctx); err != nil {
				return err
			}
		}
		return s.apply(ctx, c, &change)
	})
	return hook, err
}

// decideWebhook returns the row after decide has changed the webhook. It keeps sealed
// values that decide left unchanged, even if they can't be opened.
func (s *Store) decideWebhook(
	row *webhookRow, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (*webhookRow, formsvc.Change, error) {
	before := s.webhook(row)
	if row.Headers != "" && before.Headers == nil {
		// They can't be opened. Empty isn't nil: setting them to nil removes them.
		before.Headers = []formsvc.Header{}
	}
	after := before
	after.Events, after.Headers = slices.Clone(before.Events), slices.Clone(before.Headers)
	change, err := decide(&after)
	if err != nil || after.Version == before.Version {
		return row, change, err
	}
	changed, err := s.newWebhookRow(&after)
	if err != nil {
		return nil, change, err
	}
	if after.Secret == before.Secret {
		changed.Secret = row.Secret
	}
	if after.Previous == before.Previous && after.PreviousUntil.Equal(before.PreviousUntil) {
		changed.PreviousSecret = row.PreviousSecret
	}
	if slices.Equal(after.Headers, before.Headers) && (after.Headers == nil) == (before.Headers == nil) {
		changed.Headers = row.Headers
	}
	return changed, change, nil
}

// Webhook implements formsvc.WebhookStore.
func (s *Store) Webhook(ctx context.Context, key formsvc.WebhookKey) (formsvc.Webhook, error) {
	return one(ctx, s, s.webhook, "account_id = ? AND id = ?", ID(key.AccountID), ID(key.ID))
}

// Webhooks implements formsvc.WebhookStore.
func (s *Store) Webhooks(ctx context.Context, account formsvc.ID) ([]formsvc.Webhook, error) {
	return all(ctx, s, s.webhook, "account_id = ?", ID(account))
}

// DueSummaries implements formsvc.WebhookStore. Accounts have few webhooks: it needs no index.
func (s *Store) DueSummaries(ctx context.Context, now time.Time, limit int) ([]formsvc.Webhook, error) {
	due, err := all(ctx, s, s.webhook, "NOT disabled AND daily AND next_at > ? AND next_at <= ?", Never, micros(now))
	return due[:min(len(due), max(limit, 0))], err
}

// DeleteWebhook implements formsvc.WebhookStore. It leaves the deliveries to Prune, so
// that its cost doesn't depend on their number.
func (s *Store) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey, change formsvc.Change) error {
	return s.write(ctx, ids(key.AccountID, key.ID), &change, func(ctx context.Context, c *Tx) error {
		if err := changedOne(s.build.NewDelete().Conn(c).Model((*webhookRow)(nil)).
			Where("account_id = ? AND id = ?", ID(key.AccountID), ID(key.ID)).Exec(ctx)); err != nil {
			return err
		}
		_, err := s.build.NewDelete().Conn(c).TableExpr("formsvc_failing").Where("webhook_id = ?", ID(key.ID)).Exec(ctx)
		return err
	})
}

// checkWebhook returns formsvc.ErrNotFound unless the account has the webhook.
func (s *Store) checkWebhook(ctx context.Context, c bun.IConn, key formsvc.WebhookKey) error {
	var id ID
	return s.notFound(s.build.NewSelect().Conn(c).Model((*webhookRow)(nil)).Column("id").
		Where("account_id = ? AND id = ?", ID(key.AccountID), ID(key.ID)).Scan(ctx, &id))
}

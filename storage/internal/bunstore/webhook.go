package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

type webhookRow struct {
	bun.BaseModel `bun:"table:formsvc_webhooks,alias:w"`

	ID         string `bun:",pk"`
	AccountID  string
	URL        string
	Events     int64
	CampaignID sql.NullString
	Secret     string
	Disabled   bool
	CreatedAt  int64
	UpdatedAt  int64
}

// EventBit is the bit that stands for an event type in a webhook's set of them
// and in a delivery; 0 for a type that doesn't exist.
func EventBit(t formsvc.EventType) int64 {
	for i, known := range webhook.EventTypes() {
		if known == t {
			return 1 << i
		}
	}
	return 0
}

// checkEvents refuses event types that have no bit.
func checkEvents(types ...formsvc.EventType) error {
	for _, t := range types {
		if EventBit(t) == 0 {
			return fmt.Errorf("bunstore: unknown event type: %w", formsvc.ErrInvalid)
		}
	}
	return nil
}

// eventOf is the inverse of EventBit.
func eventOf(bit int64) formsvc.EventType {
	for i, t := range webhook.EventTypes() {
		if bit == 1<<i {
			return t
		}
	}
	return ""
}

func newWebhookRow(w *formsvc.Webhook) *webhookRow {
	r := &webhookRow{
		ID: string(w.ID), AccountID: string(w.AccountID), URL: w.URL, Secret: w.Secret, Disabled: w.Disabled,
		CampaignID: sql.NullString{String: string(w.CampaignID), Valid: w.CampaignID != ""},
		CreatedAt:  micros(w.CreatedAt), UpdatedAt: micros(w.UpdatedAt),
	}
	for _, t := range w.Events {
		r.Events |= EventBit(t)
	}
	return r
}

func (r *webhookRow) webhook() formsvc.Webhook {
	w := formsvc.Webhook{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), URL: r.URL, Secret: r.Secret, Disabled: r.Disabled,
		CampaignID: formsvc.ID(r.CampaignID.String), CreatedAt: fromMicros(r.CreatedAt), UpdatedAt: fromMicros(r.UpdatedAt),
	}
	for i, t := range webhook.EventTypes() {
		if r.Events&(1<<i) != 0 {
			w.Events = append(w.Events, t)
		}
	}
	return w
}

// CreateWebhook implements formsvc.WebhookStore.
func (s *Store) CreateWebhook(ctx context.Context, hook formsvc.Webhook, limit int) error {
	if err := s.ready(ctx, hook.AccountID); err != nil {
		return err
	}
	if err := errors.Join(
		checkIDs(hook.ID), formsvc.CheckText(hook.URL, hook.Secret), checkEvents(hook.Events...),
	); err != nil {
		return err
	}
	if hook.CampaignID != "" {
		if err := checkIDs(hook.CampaignID); err != nil {
			return err
		}
	}
	return s.unit(ctx, func(ctx context.Context, c bun.IConn) error {
		// The lock on the account makes two that count at once take turns.
		q := s.build.NewSelect().Conn(c).Table("formsvc_accounts").Column("id").Where("id = ?", string(hook.AccountID))
		if lock := s.backend.ForUpdate(); lock != "" {
			q = q.For(lock)
		}
		var id string
		if err := s.notFound(q.Scan(ctx, &id)); err != nil {
			return err
		}
		n, err := s.build.NewSelect().Conn(c).Model((*webhookRow)(nil)).
			Where("account_id = ?", string(hook.AccountID)).Count(ctx)
		if err != nil {
			return err
		}
		if n >= int64(limit) {
			return formsvc.ErrLimit
		}
		_, err = s.build.NewInsert().Conn(c).Model(newWebhookRow(&hook)).Exec(ctx)
		return err
	})
}

// Webhook implements formsvc.WebhookStore.
func (s *Store) Webhook(ctx context.Context, key formsvc.WebhookKey) (formsvc.Webhook, error) {
	if err := s.ready(ctx, key.AccountID, key.ID); err != nil {
		return formsvc.Webhook{}, err
	}
	var row webhookRow
	err := s.build.NewSelect().Conn(s.read).Model(&row).
		Where("account_id = ? AND id = ?", string(key.AccountID), string(key.ID)).Scan(ctx)
	if err != nil {
		return formsvc.Webhook{}, s.notFound(err)
	}
	return row.webhook(), nil
}

// Webhooks implements formsvc.WebhookStore.
func (s *Store) Webhooks(ctx context.Context, account formsvc.ID) ([]formsvc.Webhook, error) {
	if err := s.ready(ctx, account); err != nil {
		return nil, noneWhenNotFound(err)
	}
	var rows []webhookRow
	err := s.build.NewSelect().Conn(s.read).Model(&rows).Where("account_id = ?", string(account)).Order("id").Scan(ctx)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	hooks := make([]formsvc.Webhook, len(rows))
	for i := range rows {
		hooks[i] = rows[i].webhook()
	}
	return hooks, nil
}

// DeleteWebhook implements formsvc.WebhookStore. Its deliveries stay until
// Claim meets them and deletes them in batches, so that the cost here does not
// depend on how many are waiting.
func (s *Store) DeleteWebhook(ctx context.Context, key formsvc.WebhookKey) error {
	if err := s.ready(ctx, key.AccountID, key.ID); err != nil {
		return err
	}
	return s.unit(ctx, func(ctx context.Context, c bun.IConn) error {
		result, err := s.build.NewDelete().Conn(c).Model((*webhookRow)(nil)).
			Where("account_id = ? AND id = ?", string(key.AccountID), string(key.ID)).Exec(ctx)
		return changedOne(result, err)
	})
}

type deliveryRow struct {
	bun.BaseModel `bun:"table:formsvc_deliveries,alias:d"`

	ID        string `bun:",pk"`
	AccountID string
	WebhookID string
	EventID   string
	State     int
	Attempts  int
	DueAt     int64
	CreatedAt int64
	UpdatedAt int64
}

// The states of a delivery in its row.
const (
	statePending = iota
	stateDelivered
	stateFailed
)

func (r *deliveryRow) delivery() formsvc.Delivery {
	states := [...]formsvc.DeliveryState{formsvc.DeliveryPending, formsvc.DeliveryDelivered, formsvc.DeliveryFailed}
	return formsvc.Delivery{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), WebhookID: formsvc.ID(r.WebhookID),
		EventID: formsvc.ID(r.EventID), State: states[r.State], Attempts: r.Attempts,
		DueAt: fromMicros(r.DueAt), CreatedAt: fromMicros(r.CreatedAt), UpdatedAt: fromMicros(r.UpdatedAt),
	}
}

// Deliveries implements formsvc.WebhookStore.
func (s *Store) Deliveries(ctx context.Context, q formsvc.DeliveryQuery) (formsvc.Page[formsvc.Delivery], error) {
	var page formsvc.Page[formsvc.Delivery]
	if err := s.ready(ctx, q.AccountID, q.WebhookID); err != nil {
		return page, noneWhenNotFound(err)
	}
	q.Page = q.Page.Clamped()
	// The rows of a deleted webhook may still be there; they are nobody's.
	where := func(sel *bun.SelectQuery) *bun.SelectQuery {
		return sel.Conn(s.read).Where("d.webhook_id = (SELECT w.id FROM formsvc_webhooks AS w WHERE w.account_id = ? AND w.id = ?)",
			string(q.AccountID), string(q.WebhookID))
	}
	var err error
	page.Total, err = where(s.build.NewSelect()).Model((*deliveryRow)(nil)).Count(ctx)
	if err != nil {
		return page, s.backend.Classify(err)
	}
	var rows []deliveryRow
	if err := paged(where(s.build.NewSelect()).Model(&rows), "d.id", q.Page).Scan(ctx); err != nil {
		return page, s.backend.Classify(err)
	}
	rows, page.More = cutPage(rows, q.Page)
	for i := range rows {
		page.Items = append(page.Items, rows[i].delivery())
	}
	return page, nil
}

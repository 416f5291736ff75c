package formsvc

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// MaxWebhooks is how many webhooks an account may have (specification).
const MaxWebhooks = 50

// A Webhook is an address that is told of events.
type Webhook struct {
	ID         ID
	AccountID  ID
	URL        string      // absolute, http or https
	Events     []EventType // what it listens to, in the order of [webhook.EventTypes]
	CampaignID ID          // events of this campaign only; "" means all
	Secret     string      // signs every request
	Disabled   bool        // gets nothing
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// Listens reports whether the webhook is told of the event. Stores that choose
// by query must agree with it.
func (w *Webhook) Listens(e *Event) bool {
	return !w.Disabled && w.AccountID == e.AccountID &&
		(w.CampaignID == "" || w.CampaignID == e.CampaignID) && slices.Contains(w.Events, e.Type)
}

// WebhookKey names one webhook of one account.
type WebhookKey struct{ AccountID, ID ID }

// WebhookInput is what a new webhook needs.
type WebhookInput struct {
	URL        string
	Events     []EventType // at least one
	CampaignID ID          // "" means all campaigns
	Secret     string      // 16 to 256 bytes of UTF-8; "" means that one is generated
}

// Webhooks makes, lists and deletes webhooks. It is safe for concurrent use.
type Webhooks struct{ s *core }

// Create makes a webhook. It fails with a *[ValidationError], with
// [ErrNotFound] when the campaign is not the account's, and with [ErrLimit] at
// the 51st webhook of an account.
func (w Webhooks) Create(ctx context.Context, account ID, in WebhookInput) (Webhook, error) {
	if err := in.check(); err != nil {
		return Webhook{}, err
	}
	if in.CampaignID != "" {
		if _, err := w.s.store.Campaign(ctx, CampaignKey{AccountID: account, ID: in.CampaignID}); err != nil {
			return Webhook{}, fmt.Errorf("formsvc: create webhook: campaign: %w", err)
		}
	}
	if in.Secret == "" {
		in.Secret = newSecret()
	}
	var events []EventType
	for _, t := range webhook.EventTypes() {
		if slices.Contains(in.Events, t) {
			events = append(events, t)
		}
	}
	now := w.s.now()
	hook := Webhook{
		ID: w.s.newID(now), AccountID: account, URL: in.URL, Events: events, CampaignID: in.CampaignID,
		Secret: in.Secret, CreatedAt: now, UpdatedAt: now,
	}
	if err := w.s.store.CreateWebhook(ctx, hook, MaxWebhooks); err != nil {
		return Webhook{}, fmt.Errorf("formsvc: create webhook: %w", err)
	}
	return hook, nil
}

func (in *WebhookInput) check() error {
	var v ValidationError
	u, err := url.Parse(in.URL)
	switch {
	case in.URL == "":
		v.add("/url", "required", "is required")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		v.add("/url", "invalid_url", "must be an absolute http or https URL")
	case u.User != nil:
		v.add("/url", "invalid_url", "must not carry a user name or password")
	case u.Fragment != "":
		v.add("/url", "invalid_url", "must not have a fragment")
	}
	v.checkLine("/url", in.URL, 2048)
	if len(in.Events) == 0 {
		v.add("/events", "required", "must name at least one event")
	}
	for i, t := range in.Events {
		if !slices.Contains(webhook.EventTypes(), t) {
			v.add(fmt.Sprintf("/events/%d", i), "unknown_event", "must be one of %v", webhook.EventTypes())
		}
	}
	if n := len(in.Secret); n > 0 && (n < 16 || n > 256) {
		v.add("/secret", "out_of_range", "must have between 16 and 256 bytes")
	}
	v.checkLine("/secret", in.Secret, 256)
	return v.err()
}

// newSecret returns 32 random bytes as text.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Get returns a webhook, or [ErrNotFound].
func (w Webhooks) Get(ctx context.Context, key WebhookKey) (Webhook, error) {
	hook, err := w.s.store.Webhook(ctx, key)
	if err != nil {
		return Webhook{}, fmt.Errorf("formsvc: webhook: %w", err)
	}
	return hook, nil
}

// List returns the account's webhooks, oldest first.
func (w Webhooks) List(ctx context.Context, account ID) ([]Webhook, error) {
	hooks, err := w.s.store.Webhooks(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("formsvc: webhooks: %w", err)
	}
	return hooks, nil
}

// Delete removes a webhook; deliveries still waiting for it are never sent,
// attempts under way are not cut off. It fails with [ErrNotFound] when the account has no such webhook.
func (w Webhooks) Delete(ctx context.Context, key WebhookKey) error {
	if err := w.s.store.DeleteWebhook(ctx, key); err != nil {
		return fmt.Errorf("formsvc: delete webhook: %w", err)
	}
	return nil
}

// Deliveries returns a page of a webhook's deliveries.
func (w Webhooks) Deliveries(ctx context.Context, q DeliveryQuery) (Page[Delivery], error) {
	q.Page = q.Page.Clamped()
	page, err := w.s.store.Deliveries(ctx, q)
	if err != nil {
		return Page[Delivery]{}, fmt.Errorf("formsvc: deliveries: %w", err)
	}
	return page, nil
}

// DeliveryState is how far a delivery got.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending"   // waits for an attempt, the first or a later one, or is in one
	DeliveryDelivered DeliveryState = "delivered" // the receiver answered 2xx
	DeliveryFailed    DeliveryState = "failed"    // the last attempt failed
)

// A Delivery is one event on its way to one webhook.
type Delivery struct {
	ID        ID // see [DeliveryID]
	AccountID ID
	WebhookID ID
	EventID   ID
	State     DeliveryState
	Attempts  int       // attempts whose result is known
	DueAt     time.Time // when the next attempt may start; during one, when it counts as lost
	CreatedAt time.Time
	UpdatedAt time.Time // when the last attempt ended; zero before
}

// DeliveryQuery chooses deliveries of one webhook.
type DeliveryQuery struct {
	AccountID ID
	WebhookID ID
	Page      PageQuery
}

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// WebhookInput is what a webhook needs.
type WebhookInput struct {
	URL          string              `json:"url"` // absolute, http or https; or mailto: and an address
	Events       []formsvc.EventType `json:"events"`
	CampaignUUID string              `json:"campaignUuid,omitzero"` // events of this campaign only; "" means all
	Secret       string              `json:"secret,omitzero"`       // signs every request; "" means a generated one, or the one it has
	Headers      map[string]*string  `json:"headers,omitempty"`     // of each request; nil keeps a value, and stands for it in replies
	Disabled     bool                `json:"disabled,omitzero"`     // receives only what is redelivered
	Mail         *WebhookMail        `json:"mail,omitzero"`         // nil unless the URL is mailto:
}

// A WebhookMail says how a webhook with a mailto: URL sends mail.
type WebhookMail struct {
	Daily       bool      `json:"daily"`                // one mail a day with the numbers of new responses
	ReplyTo     bool      `json:"replyTo"`              // replies go to the person who sent the form
	ConfirmedAt time.Time `json:"confirmedAt,omitzero"` // when the recipient agreed; the server sets it
}

// A Webhook is a URL that receives events. Secret is set only where the reply shows it, once: by Create and Rotate.
type Webhook struct {
	UUID string `json:"uuid"`
	WebhookInput

	PreviousSecretExpiresAt time.Time `json:"previousSecretExpiresAt"` // zero: only one secret signs
	Warnings                []string  `json:"warnings"`
	CreatedAt               time.Time `json:"createdAt"`
	UpdatedAt               time.Time `json:"updatedAt"`
	ETag                    string    `json:"-"` // its version, for [IfMatch]; "" in lists
}

func (w *Webhook) setETag(etag string) { w.ETag = etag }

// A Rotation replaces the secret of a webhook.
type Rotation struct {
	Secret string `json:"secret,omitzero"` // "" means a generated one
	// GracePeriodSeconds is for how long the old secret signs, too. nil means a day; 0 ends it at once.
	GracePeriodSeconds *int `json:"gracePeriodSeconds,omitzero"`
}

// Webhooks creates, changes, tests and lists webhooks.
type Webhooks struct{ c *Client }

const webhooks = "/v1/webhooks"

// All returns all webhooks, page after page. An error ends them.
func (s Webhooks) All(ctx context.Context, q *PageQuery, opts ...CallOption) iter.Seq2[Webhook, error] {
	return all[Webhook](ctx, s.c, webhooks, or(q).values(), opts)
}

// Get returns a webhook.
func (s Webhooks) Get(ctx context.Context, id string, opts ...CallOption) (Webhook, error) {
	return get[Webhook](ctx, s.c, webhooks+segment(id), nil, opts)
}

// Create creates a webhook. The result has its secret, unless an earlier attempt whose reply was lost had it: then Rotate.
func (s Webhooks) Create(ctx context.Context, in WebhookInput, opts ...CallOption) (Webhook, error) {
	return send[Webhook](ctx, s.c, s.c.newCall(http.MethodPost, webhooks, in, opts))
}

// Replace replaces all of a webhook but its secret, which stays if it is "".
func (s Webhooks) Replace(ctx context.Context, id string, in WebhookInput, opts ...CallOption) (Webhook, error) {
	return send[Webhook](ctx, s.c, s.c.newCall(http.MethodPut, webhooks+segment(id), in, opts))
}

// Delete deletes a webhook.
func (s Webhooks) Delete(ctx context.Context, id string, opts ...CallOption) error {
	_, err := s.c.do(ctx, s.c.newCall(http.MethodDelete, webhooks+segment(id), nil, opts))
	return err
}

// Test sends an event that is marked as a test.
func (s Webhooks) Test(ctx context.Context, id string, opts ...CallOption) (Delivery, error) {
	return send[Delivery](ctx, s.c, s.c.newCall(http.MethodPost, webhooks+segment(id)+"/test", nil, opts))
}

// Rotate gives a webhook a new secret.
func (s Webhooks) Rotate(ctx context.Context, id string, r Rotation, opts ...CallOption) (Webhook, error) {
	return send[Webhook](ctx, s.c, s.c.newCall(http.MethodPost, webhooks+segment(id)+"/rotate", r, opts))
}

// Redeliver sends all deliveries that failed since then again, and returns their number.
func (s Webhooks) Redeliver(ctx context.Context, id string, since time.Time, opts ...CallOption) (int, error) {
	k := s.c.newCall(http.MethodPost, webhooks+segment(id)+"/redeliver", map[string]time.Time{"since": since}, opts)
	got, err := send[struct{ Redelivered int }](ctx, s.c, k)
	return got.Redelivered, err
}

// A Delivery is one event on its way to one webhook.
type Delivery struct {
	UUID          string                `json:"uuid"`
	WebhookUUID   string                `json:"webhookUuid"`
	EventUUID     string                `json:"eventUuid"`
	Event         formsvc.EventType     `json:"event"`
	Test          bool                  `json:"test"`
	State         formsvc.DeliveryState `json:"state"`
	AttemptCount  int                   `json:"attemptCount"`
	SendingSince  time.Time             `json:"sendingSince"`  // zero unless an attempt is under way
	NextAttemptAt time.Time             `json:"nextAttemptAt"` // zero if none is to come
	CreatedAt     time.Time             `json:"createdAt"`
	UpdatedAt     time.Time             `json:"updatedAt"` // zero before the first attempt ended
	Attempts      []Attempt             `json:"attempts"`
}

// An Attempt is one request to a webhook.
type Attempt struct {
	Number     int       `json:"number"`
	StartedAt  time.Time `json:"startedAt"`
	DurationMS float64   `json:"durationMs"`
	Status     int       `json:"status"` // of the receiver's reply; 0 if there was none
	Error      string    `json:"error"`  // why it failed
	Answer     string    `json:"answer"` // the beginning of the receiver's reply
}

// DeliveryQuery chooses deliveries of a webhook.
type DeliveryQuery struct {
	PageQuery

	State formsvc.DeliveryState // "" means any
}

func (q *DeliveryQuery) values() url.Values {
	v := q.PageQuery.values()
	set(v, "state", q.State)
	return v
}

// Deliveries reads the log of deliveries and repeats them.
type Deliveries struct{ c *Client }

// All returns all deliveries that q chooses, page after page. An error ends them.
func (s Deliveries) All(ctx context.Context, webhook string, q *DeliveryQuery, opts ...CallOption) iter.Seq2[Delivery, error] {
	return all[Delivery](ctx, s.c, webhooks+segment(webhook)+"/deliveries", or(q).values(), opts)
}

// Get returns a delivery.
func (s Deliveries) Get(ctx context.Context, id string, opts ...CallOption) (Delivery, error) {
	return get[Delivery](ctx, s.c, "/v1/deliveries"+segment(id), nil, opts)
}

// Redeliver sends a delivery again.
func (s Deliveries) Redeliver(ctx context.Context, id string, opts ...CallOption) (Delivery, error) {
	return send[Delivery](ctx, s.c, s.c.newCall(http.MethodPost, "/v1/deliveries"+segment(id)+"/redeliver", nil, opts))
}

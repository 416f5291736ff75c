package formsvc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// EventType names a kind of event. The constants are in package webhook, since receivers need them too.
type EventType = webhook.EventType

// WithoutAnswers returns the event types whose payloads have no answers. Their deliveries can be sent again after the response
// was deleted.
func WithoutAnswers() []EventType { return []EventType{webhook.ResponseDeleted} }

// An Event says that something happened to a response: it is new, its content or status changed, it
// got a file or a signature, or it was deleted. An event is stored in the same atomic write as the
// change, with a delivery for every webhook that listens.
//
// The payload is encoded once and shows the response right after the event; every delivery attempt
// sends exactly these bytes. A payload that would exceed [MaxPayload] is sent without the answers
// and with data.truncated set; no event is dropped.
type Event struct {
	ID         ID
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Type       EventType
	Payload    []byte // at most MaxPayload
	Test       bool   // a test event for a webhook; not in the feed
	To         ID     // the webhook that gets a test event, even if it is disabled; it isn't stored
	// Confirm sends the form's [Confirmation]. Retried makes the delivery of a test event one with retries instead of a replay,
	// which is not sent while the webhook is disabled. Neither is stored.
	Confirm, Retried bool
	CreatedAt        time.Time
	// TraceParent is the span that raised the event, in the form of W3C Trace Context's traceparent
	// header; "" without tracing. It isn't part of the payload; the delivery engine receives both.
	TraceParent string
}

// Delivery returns the delivery of a new event to a webhook.
func (e *Event) Delivery(webhook ID) Delivery {
	return Delivery{
		ID: DeliveryID(e.ID, webhook), AccountID: e.AccountID, WebhookID: webhook, EventID: e.ID, Event: e.Type, Test: e.Test,
		State: DeliveryPending, DueAt: e.CreatedAt, CreatedAt: e.CreatedAt,
	}
}

// AppendJSON appends the payload.
func (e *Event) AppendJSON(b []byte) []byte { return append(b, e.Payload...) }

// eventExtra holds the fields that only some events have.
type eventExtra struct {
	previousStatus string
	changes        []string
	member         string // one more field of data: its name and JSON
	json           []byte
	test           bool
	actor          Actor
}

func (c *core) newEvent(ctx context.Context, t EventType, campaign *Campaign, r *Response, now time.Time, extra eventExtra) Event {
	e := Event{
		ID: c.NewID(now), AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Type: t, CreatedAt: now,
		Test: extra.test, TraceParent: c.traceParent(ctx),
	}
	extra.actor = c.actor
	e.Payload = e.payload(campaign, r, extra, true)
	if len(e.Payload) > MaxPayload {
		e.Payload = e.payload(campaign, r, extra, false)
	}
	if len(e.Payload) > MaxPayload { // the names of a thousand changed modules
		extra.changes = nil
		e.Payload = e.payload(campaign, r, extra, false)
	}
	return e
}

// payload returns the delivery body. Unless whole is true, the answers are left out and data.truncated is true.
func (e *Event) payload(campaign *Campaign, r *Response, extra eventExtra, whole bool) []byte {
	b := make([]byte, 0, 640+len(r.Answers.text)+len(campaign.Title))
	b = appendText(b, `{"id":`, string(e.ID))
	b = appendText(b, `,"event":`, string(e.Type))
	b = appendTime(b, `,"timestamp":`, e.CreatedAt)
	if e.Test {
		b = append(b, `,"test":true`...)
	}
	b = appendText(b, `,"data":{"campaign":{"uuid":`, string(campaign.ID))
	if e.Type == webhook.ResponseDeleted { // identifiers alone
		b = appendText(b, `},"response":{"uuid":`, string(r.ID))
		b = appendText(b, `,"reference":`, r.Reference)
		return append(appendActor(append(b, '}'), Actor{Type: extra.actor.Type, ID: extra.actor.ID}), '}', '}')
	}
	b = appendText(b, `,"title":`, campaign.Title)
	b = appendResponse(append(b, `},"response":`...), r, whole)
	if extra.previousStatus != "" {
		b = appendText(b, `,"previousStatus":`, extra.previousStatus)
	}
	if extra.changes != nil {
		b = appendStrings(append(b, `,"changes":`...), extra.changes)
	}
	if extra.member != "" {
		b = append(fmt.Appendf(b, `,"%s":`, extra.member), extra.json...)
	}
	b = appendActor(b, extra.actor)
	if !whole {
		b = append(b, `,"truncated":true`...)
	}
	return append(b, '}', '}')
}

func appendActor(b []byte, a Actor) []byte {
	b = appendText(b, `,"actor":{"type":`, string(cmp.Or(a.Type, webhook.ActorSystem)))
	if a.ID != "" {
		b = appendText(b, `,"id":`, a.ID)
	}
	if a.Name != "" {
		b = appendText(b, `,"name":`, a.Name)
	}
	return append(b, '}')
}

// testEvent returns a test event for a webhook: of the first type that it listens to, about a
// response that doesn't exist. Its campaign is the webhook's, if it has one.
func (c *core) testEvent(ctx context.Context, hook *Webhook) (Event, error) {
	now := c.now()
	campaign := Campaign{ID: c.NewID(now), CampaignInput: CampaignInput{Title: "Test campaign"}}
	if hook.CampaignID != "" {
		known, err := c.store.Campaign(ctx, CampaignKey{AccountID: hook.AccountID, ID: hook.CampaignID})
		switch {
		case err == nil:
			campaign = known
		case !errors.Is(err, ErrNotFound):
			return Event{}, fmt.Errorf("campaign: %w", err)
		}
	}
	r := Response{
		ID: c.NewID(now), AccountID: hook.AccountID, CampaignID: campaign.ID, Reference: c.newReference(now),
		Status: StatusPending, User: User{Email: "test@example.com", FirstName: "Test", LastName: "Person"},
		Answers: NewAnswers(Answer{Name: "message", Value: []string{"This is a test."}}), Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	extra := eventExtra{test: true}
	t := hook.Events[0]
	switch t {
	case webhook.ResponseUpdated:
		extra.changes = []string{"/responses/message"}
	case webhook.ResponseStatusChanged:
		extra.previousStatus, r.Status = r.Status, "validated"
	case webhook.ResponseCompleted:
		extra.previousStatus, r.Status, r.CompletedAt = r.Status, "completed", now
	case webhook.FileUploaded:
		file := File{
			ID: c.NewID(now), CampaignID: r.CampaignID, ResponseID: r.ID, Name: "test.txt", ContentType: "text/plain", Module: "message",
			Size: int64(len(testDocument)), SHA256: sha256.Sum256([]byte(testDocument)), CreatedAt: now,
		}
		extra.member, extra.json = "file", file.AppendJSON(nil)
	case webhook.SignatureCompleted:
		signature := Signature{
			ID: c.NewID(now), Signer: r.User, Provider: "test", DocumentSHA256: sha256.Sum256([]byte(testDocument)), SignedAt: now, CreatedAt: now,
		}
		extra.member, extra.json = "signature", signature.AppendJSON(nil)
	case webhook.ResponseCreated, webhook.ResponseDeleted:
	}
	e := c.newEvent(ctx, t, &campaign, &r, now, extra)
	e.To = hook.ID
	return e, nil
}

// testDocument is the content of the sample file.
const testDocument = "This is a test.\n"

// traceParentForm is version 00 of https://www.w3.org/TR/trace-context/#traceparent-header.
var traceParentForm = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceParent returns [Event.TraceParent] for events that are raised in ctx.
func (c *core) traceParent(ctx context.Context) string {
	if c.TraceParent == nil {
		return ""
	}
	return traceParentForm.FindString(c.TraceParent(ctx))
}

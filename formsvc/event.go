package formsvc

import (
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// EventType names a kind of event; the constants are in package webhook, since
// receivers need them too.
type EventType = webhook.EventType

// An Event says that something happened to a response: a new response, a change of
// its content or its status, a file and a signature raise events, a comment none. It
// is stored in the same unit as the change, with a delivery for every webhook that
// listens, so that there is no event without a change, and no change whose event is
// lost.
//
// Its payload is made once, as bytes, and shows the response as the event left it;
// every attempt to deliver it sends exactly these bytes. One that would exceed
// [MaxPayload] goes without the answers, and says so in data.truncated; no event is
// dropped.
type Event struct {
	ID         ID
	AccountID  ID
	CampaignID ID
	ResponseID ID
	Type       EventType
	Payload    []byte // at most MaxPayload
	Test       bool   // made by hand to try a webhook; not in the feed
	CreatedAt  time.Time
	// TraceParent is the span that raised the event, in the form of the header
	// traceparent of W3C Trace Context; "" when nobody traced it. It is no part of the
	// payload; the delivery engine gets it with it.
	TraceParent string
}

// eventExtra holds the members that only some events have.
type eventExtra struct {
	previousStatus string
	changes        []string
	member         string // the name of one more member of data, with its JSON
	json           []byte
	test           bool
	trace          string // see Event.TraceParent
}

func (c *core) newEvent(t EventType, campaign *Campaign, r *Response, now time.Time, extra eventExtra) Event {
	e := Event{
		ID: c.newID(now), AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Type: t, CreatedAt: now,
		TraceParent: extra.trace,
	}
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

// payload makes the delivery body. With whole false the answers are left out
// and data.truncated is true.
func (e *Event) payload(campaign *Campaign, r *Response, extra eventExtra, whole bool) []byte {
	b := make([]byte, 0, 640+len(r.Answers.text)+len(campaign.Title))
	b = append(b, `{"id":"`...)
	b = append(b, e.ID...)
	b = append(b, `","event":"`...)
	b = append(b, e.Type...)
	b = append(b, `","timestamp":`...)
	b = AppendTime(b, e.CreatedAt)
	if extra.test {
		b = append(b, `,"test":true`...)
	}
	b = append(b, `,"data":{"campaign":{"uuid":"`...)
	b = append(b, campaign.ID...)
	b = append(b, `","title":`...)
	b = appendString(b, campaign.Title)
	b = append(b, `},"response":`...)
	b = appendResponse(b, r, whole)
	if extra.previousStatus != "" {
		b = append(b, `,"previousStatus":`...)
		b = appendString(b, extra.previousStatus)
	}
	if extra.changes != nil {
		b = append(b, `,"changes":`...)
		b = appendStrings(b, extra.changes)
	}
	if extra.member != "" {
		b = append(b, `,"`...)
		b = append(b, extra.member...)
		b = append(b, `":`...)
		b = append(b, extra.json...)
	}
	if !whole {
		b = append(b, `,"truncated":true`...)
	}
	return append(b, '}', '}')
}

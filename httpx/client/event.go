package client

import (
	"context"
	"net/url"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// An EventPage is a part of the account's events, oldest first.
type EventPage struct {
	Items []webhook.Event `json:"items"` // as webhooks get them
	Next  string          `json:"nextCursor"`
	More  bool            `json:"more"` // whether more events followed
}

// EventQuery chooses events.
type EventQuery struct {
	Types        []formsvc.EventType // none means all
	CampaignUUID string              // "" means all
	Limit        int                 // of a page, 1 to 1000. Defaults to 50
	Newest       bool                // up to 100 of the newest in place of a page, as samples. Follow ignores it
	Poll         time.Duration       // how long Follow waits for new events. Defaults to 5 seconds
}

// Events reads and follows events.
type Events struct{ c *Client }

// List returns the events after cursor, which is the Next of an earlier page, or "" for the oldest. nil means all types.
func (s Events) List(ctx context.Context, cursor string, q *EventQuery, opts ...CallOption) (EventPage, error) {
	v := url.Values{}
	set(v, "event", or(q).Types...)
	set(v, "campaignUuid", or(q).CampaignUUID)
	setInt(v, "limit", or(q).Limit)
	set(v, "cursor", cursor)
	if or(q).Newest {
		v.Set("order", "desc")
	}
	return get[EventPage](ctx, s.c, "/v1/events", v, opts)
}

// Follow calls handle with the events after cursor, and then with new ones, until ctx ends; then it returns nil. handle
// gets at least one event, and the cursor to continue with after a restart: store it with your work. An error of handle
// ends Follow and is returned. No event is skipped unless the program is down for longer than the service keeps events.
func (s Events) Follow(ctx context.Context, cursor string, handle func(ctx context.Context, events []webhook.Event, next string) error, q *EventQuery) error {
	query := *or(q)
	query.Newest = false
	if query.Poll <= 0 {
		query.Poll = 5 * time.Second
	}
	for ctx.Err() == nil {
		page, err := s.List(ctx, cursor, &query)
		if err == nil && len(page.Items) > 0 {
			err = handle(ctx, page.Items, page.Next)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		cursor = page.Next
		if !page.More {
			select {
			case <-ctx.Done():
			case <-time.After(query.Poll):
			}
		}
	}
	return nil
}

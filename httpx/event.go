package httpx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

const badEventCursor = "must be the nextCursor of an earlier page"

// listEvents lists the events after a position, as webhooks got them, or the newest.
func (h *Handler) listEvents(c *call) error {
	q, err := parseQuery(c.r.URL.RawQuery, "limit cursor event campaignUuid order")
	if err != nil {
		return err
	}
	if err := c.withoutFiles(&q); err != nil {
		return err
	}
	if q.order == "desc" {
		return h.listNewestEvents(c, &q)
	}
	q.page.Ascending = false // so that cursors are the same whether the order is given or not
	// The types of events are left out of the scope, so that a reader can go on with other types.
	sum := c.scope(&q)
	after, ok := parseCursor(q.cursor, sum)
	if q.cursor != "" && !ok {
		return badCursor(badEventCursor)
	}
	page, err := h.svc.Events.List(c.ctx(), formsvc.EventQuery{
		AccountID: c.who.AccountID, CampaignID: q.campaign, Types: q.events, After: formsvc.Cursor(after), Limit: q.page.Limit,
	})
	if errors.Is(err, formsvc.ErrInvalid) {
		return badCursor(badEventCursor)
	}
	if err != nil {
		return err
	}
	if err := c.appendEvents(page.Items); err != nil {
		return err
	}
	c.out = fmt.Appendf(c.out, `],"limit":%d,"nextCursor":"%s","more":%t}`, q.page.Limit, cursor(string(page.Next), sum), page.More)
	return c.finishList()
}

// withoutFiles leaves file.uploaded out for a principal that may not read files, and refuses to list it by name: the
// event has a file's name, size and hash.
func (c *call) withoutFiles(q *listQuery) error {
	if c.who.May(formsvc.FilesRead) {
		return nil
	}
	if slices.Contains(q.events, webhook.FileUploaded) {
		return c.needs(formsvc.FilesRead)
	}
	if len(q.events) == 0 {
		q.events = slices.DeleteFunc(webhook.KnownEventTypes(), func(t formsvc.EventType) bool { return t == webhook.FileUploaded })
	}
	return nil
}

// listNewestEvents lists samples. There is no cursor to go on from them, since events that commit later may be older.
func (h *Handler) listNewestEvents(c *call, q *listQuery) error {
	limit := min(q.page.Limit, formsvc.MaxRecent)
	events, err := h.svc.Events.Recent(c.ctx(), formsvc.RecentQuery{
		AccountID: c.who.AccountID, CampaignID: q.campaign, Types: q.events, Limit: limit,
	})
	if err != nil {
		return err
	}
	if err := c.appendEvents(events); err != nil {
		return err
	}
	c.out = fmt.Appendf(c.out, `],"limit":%d}`, limit)
	return c.finishList()
}

func (c *call) appendEvents(events []formsvc.Event) error {
	size := 0
	for i := range events {
		size += len(events[i].Payload)
	}
	if err := c.reserve(size); err != nil {
		return err
	}
	c.beginList()
	for i := range events {
		c.beginItem(i)
		c.out = append(c.out, events[i].Payload...)
	}
	return nil
}

package httpx

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/formsvc/toolkit/formsvc"
)

// listEvents answers with the events after a position, as they were sent to
// webhooks, or with the newest.
func (h *Handler) listEvents(c *call) error {
	q, err := parseQuery(c.r.URL.RawQuery, paramLimit|paramCursor|paramEvent|paramCampaign|paramOrder)
	if err != nil {
		return err
	}
	if q.order == "desc" {
		return h.listNewestEvents(c, &q)
	}
	q.page.Ascending = false // so that cursors are the same whether the order is named or not
	// The events asked for are no part of it: a reader can go on with others.
	sum := c.scope(&q)
	var after formsvc.EventPosition
	if q.cursor != "" {
		var ok bool
		if after, ok = parsePosition(q.cursor, sum); !ok {
			return badCursor("must be the nextCursor of an earlier answer")
		}
	}
	page, err := h.svc.Events.List(c.r.Context(), formsvc.EventQuery{
		AccountID: c.who.AccountID, CampaignID: q.campaign, Types: q.events, After: after, Limit: q.page.Limit,
	})
	if err != nil {
		return err
	}
	c.appendEvents(page.Items, q.page.Limit)
	b := append(c.out, `,"nextCursor":"`...)
	b = appendPosition(b, page.Next, sum)
	b = append(b, `","more":`...)
	b = strconv.AppendBool(b, page.More)
	c.out = append(b, '}')
	return c.finishList()
}

// listNewestEvents answers with samples: there is no going on from them, since those
// that come later may be older.
func (h *Handler) listNewestEvents(c *call, q *listQuery) error {
	limit := min(q.page.Limit, formsvc.MaxRecent)
	events, err := h.svc.Events.Recent(c.r.Context(), formsvc.RecentQuery{
		AccountID: c.who.AccountID, CampaignID: q.campaign, Types: q.events, Limit: limit,
	})
	if err != nil {
		return err
	}
	c.appendEvents(events, limit)
	c.out = append(c.out, '}')
	return c.finishList()
}

// appendEvents begins a list with these items and that limit.
func (c *call) appendEvents(events []formsvc.Event, limit int) {
	c.beginList()
	for i := range events {
		c.beginItem(i)
		c.out = append(c.out, events[i].Payload...)
	}
	c.out = append(c.out, `],"limit":`...)
	c.out = strconv.AppendInt(c.out, int64(limit), 10)
}

// A position's cursor is a version, its two numbers and the scope, in base64
// that is safe in a query.
const (
	positionVersion = 1
	positionBytes   = 1 + 8 + 8 + 8
)

func appendPosition(b []byte, p formsvc.EventPosition, sum scope) []byte {
	var raw [positionBytes]byte
	raw[0] = positionVersion
	binary.BigEndian.PutUint64(raw[1:], uint64(p.Commit)) //nolint:gosec // all 64 bits come back
	binary.BigEndian.PutUint64(raw[9:], uint64(p.Row))    //nolint:gosec // the same
	copy(raw[17:], sum[:])
	return base64.RawURLEncoding.AppendEncode(b, raw[:])
}

func parsePosition(s string, sum scope) (formsvc.EventPosition, bool) {
	var raw [positionBytes + 2]byte
	if len(s) != base64.RawURLEncoding.EncodedLen(positionBytes) {
		return formsvc.EventPosition{}, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(s))
	if err != nil || n != positionBytes || raw[0] != positionVersion || scope(raw[17:25]) != sum {
		return formsvc.EventPosition{}, false
	}
	return formsvc.EventPosition{
		Commit: int64(binary.BigEndian.Uint64(raw[1:])), //nolint:gosec // all 64 bits as they were
		Row:    int64(binary.BigEndian.Uint64(raw[9:])), //nolint:gosec // the same
	}, true
}

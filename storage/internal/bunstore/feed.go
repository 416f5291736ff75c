package bunstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// feedScan is up to how many events one call looks at if it leaves most of them out, to
// limit its cost. The caller continues from EventPage.Next.
const feedScan = 10_000

// LostPositions is how far a feed moves on when its database is restored: further than
// any reader can have read since any backup. The positions suffice for millions of
// restores.
const LostPositions = 1_000_000_000_000

// Events implements formsvc.EventStore.
func (s *Store) Events(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	if err := s.ready(ctx, q.AccountID); err != nil {
		return formsvc.EventPage{Next: q.After}, noneWhenNotFound(err)
	}
	return s.events(ctx, q)
}

// AllEvents implements formsvc.EventStore.
func (s *Store) AllEvents(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	if err := s.ready(ctx); err != nil {
		return formsvc.EventPage{Next: q.After}, err
	}
	q.AccountID = ""
	return s.events(ctx, q)
}

// events looks at the positions, types and sizes of events and then reads those that fit on the page.
func (s *Store) events(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	page := formsvc.EventPage{Next: q.After}
	after, err := parseCursor(q.After)
	if err != nil {
		return page, err
	}
	if err := checkTypes(q.Types...); err != nil {
		return page, err
	}
	q = q.Clamped()
	p := picked{limit: q.Limit, maxBytes: q.MaxBytes, bits: eventBits(q.Types), campaign: ID(q.CampaignID), last: after}
	// The first step asks for one more than the page holds, to learn whether others follow.
	more, err := s.pickAll(ctx, &p, max(q.Limit+1, 100), &FeedQuery{Account: ID(q.AccountID), Early: q.Early})
	if err == nil {
		page.Items, err = s.eventsByID(ctx, q.AccountID, p.ids)
	}
	if err != nil {
		return formsvc.EventPage{Next: q.After}, s.backend.Classify(err)
	}
	page.Next, page.More = p.last.cursor(), more
	return page, nil
}

// A Position is that of an event in the feed. Its cursor has both numbers in decimal.
type Position struct{ Commit, Row int64 }

func (p Position) cursor() formsvc.Cursor {
	if p == (Position{}) {
		return ""
	}
	return formsvc.Cursor(strconv.FormatInt(p.Commit, 10) + "." + strconv.FormatInt(p.Row, 10))
}

func parseCursor(c formsvc.Cursor) (p Position, err error) {
	commit, row, _ := strings.Cut(string(c), ".")
	p.Commit, _ = strconv.ParseInt(commit, 10, 64)
	p.Row, _ = strconv.ParseInt(row, 10, 64)
	if p.cursor() != c {
		return Position{}, fmt.Errorf("bunstore: %.50q is not a position of events: %w", c, formsvc.ErrInvalid)
	}
	return p, nil
}

// picked are the events that fit, of those that are asked for. Tests never are.
type picked struct {
	bits            int64 // of their types; 0 means all
	campaign        ID    // "" means all
	limit, maxBytes int
	bytes           int // size of their payloads
	ids             []ID
	last            Position // where to continue
	full            bool
}

func (p *picked) wants(stored int64, campaign ID) bool {
	return stored&TestBit == 0 && (p.bits == 0 || stored&p.bits != 0) && (p.campaign == "" || p.campaign == campaign)
}

// pick picks the wanted ones of a list until there is no room.
func (p *picked) pick(list []EventMeta) {
	for i := range list {
		g := &list[i]
		if p.wants(g.Type, g.CampaignID) {
			if len(p.ids) >= p.limit || len(p.ids) > 0 && p.bytes+g.Size > p.maxBytes {
				p.full = true
				return
			}
			p.ids, p.bytes = append(p.ids, g.ID), p.bytes+g.Size
		}
		p.last = g.At
	}
}

// A FeedQuery asks which events come after a position.
type FeedQuery struct {
	Account ID // "" for all
	From    Position
	Back    bool // look at events before the position instead, newest first
	Early   bool // also look at events that others may still precede
	Limit   int
}

// An EventMeta is what decides whether to read an event.
type EventMeta struct {
	ID, CampaignID ID
	At             Position `bun:"-"`
	Type           int64    // see TypeOf
	Size           int      // of the payload
}

// ScanEventMeta reads identifier, both numbers of the position, type, campaign and size.
func ScanEventMeta(rows *sql.Rows, g *EventMeta) error {
	return rows.Scan(&g.ID, &g.At.Commit, &g.At.Row, &g.Type, &g.CampaignID, &g.Size)
}

// pickAll looks at events, the first time at step of them, until there is no room or it has
// looked at feedScan of them. It reports whether others may follow.
func (s *Store) pickAll(ctx context.Context, p *picked, step int, look *FeedQuery) (more bool, err error) {
	for seen := 0; !p.full && seen < feedScan; step *= 4 {
		look.From, look.Limit = p.last, min(step, feedScan-seen)
		list, err := s.backend.ListEvents(ctx, s.read, look)
		if err != nil {
			return false, err
		}
		p.pick(list)
		if seen += len(list); len(list) < look.Limit {
			return p.full, nil
		}
	}
	return true, nil
}

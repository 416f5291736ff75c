package bunstore

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// feedLook is up to how many events one call looks at if it leaves most of them out, to
// limit its cost. The caller continues from EventPage.Next.
const feedLook = 10_000

// LostPositions is how far a feed moves on when its database is restored: further than
// any reader can have read since any backup. The positions suffice for millions of
// restores.
const LostPositions = 1_000_000_000_000

// Events implements formsvc.EventStore. It first looks at the positions, types and sizes
// of events and then reads those that fit on the page.
func (s *Store) Events(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	if q.AllAccounts {
		q.AccountID = ""
		if err := s.ready(ctx); err != nil {
			return formsvc.EventPage{Next: q.After}, err
		}
		return s.pageOfEvents(ctx, q, s.statements.wholeFeed(q.Early))
	}
	if err := s.ready(ctx, q.AccountID); err != nil {
		return formsvc.EventPage{Next: q.After}, noneWhenNotFound(err)
	}
	return s.pageOfEvents(ctx, q, s.statements.feed(q.Early))
}

func (s *Store) pageOfEvents(ctx context.Context, q formsvc.EventQuery, in feed) (formsvc.EventPage, error) {
	page := formsvc.EventPage{Next: q.After}
	q = q.Clamped()
	if err := checkTypes(q.Types...); err != nil {
		return page, err
	}
	l := looked{query: &q, in: in, wanted: wanted{eventBits(q.Types), string(q.CampaignID)}, next: q.After}
	// The first step asks for one more than the page holds, to learn whether others
	// follow.
	for seen, step := 0, max(q.Limit+1, 100); seen < feedLook; step *= 4 {
		limit := min(step, feedLook-seen)
		n, err := s.look(ctx, s.read, &l, limit)
		if err != nil {
			return page, s.backend.Classify(err)
		}
		seen += n
		if l.more = l.full || n == limit; l.full || !l.more {
			break
		}
	}
	if l.items > 0 {
		items, err := s.readEvents(ctx, s.read, &l)
		if err != nil {
			return page, s.backend.Classify(err)
		}
		page.Items = items
	}
	page.Next, page.More = l.next, l.more
	return page, nil
}

// A feed has the statements that look at events and read them.
type feed struct{ look, read string }

func (s *Statements) feed(early bool) feed {
	if early {
		return feed{s.LookAtEarlyEvents, s.ReadEvents}
	}
	return feed{s.LookAtEvents, s.ReadEvents}
}

func (s *Statements) wholeFeed(early bool) feed {
	if early {
		return feed{s.LookAtAllEarlyEvents, s.ReadAllEvents}
	}
	return feed{s.LookAtAllEvents, s.ReadAllEvents}
}

// looked is what is known of a page so far.
type looked struct {
	query *formsvc.EventQuery
	in    feed
	wanted
	next  formsvc.EventPosition // position of the last event looked at
	items int
	bytes int
	full  bool // the event after next belongs to another page
	more  bool // there are events beyond those looked at
}

// wanted says which events are asked for. Tests never are.
type wanted struct {
	bits     int64  // of their types; 0 means all
	campaign string // "" means all
}

func (w *wanted) has(stored int64, campaign string) bool {
	return stored&TestBit == 0 && (w.bits == 0 || stored&w.bits != 0) && (w.campaign == "" || w.campaign == campaign)
}

// look continues through up to limit events, until the page is full, and returns how many
// the statement returned.
func (s *Store) look(ctx context.Context, c bun.IConn, l *looked, limit int) (n int, err error) {
	rows, err := c.QueryContext(ctx, l.in.look,
		string(l.query.AccountID), l.next.Commit, l.next.Row, limit)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		n++
		var (
			at       formsvc.EventPosition
			stored   int64
			campaign string
			size     int
		)
		if err := rows.Scan(&at.Commit, &at.Row, &stored, &campaign, &size); err != nil {
			return 0, err
		}
		if l.has(stored, campaign) {
			if l.items == l.query.Limit || l.items > 0 && l.bytes+size > l.query.MaxBytes {
				l.full = true
				return n, nil
			}
			l.items++
			l.bytes += size
		}
		l.next = at
	}
	return n, rows.Err()
}

// readEvents returns the events up to the position looked at. No event can have appeared
// between them since.
func (s *Store) readEvents(ctx context.Context, c bun.IConn, l *looked) (items []formsvc.Event, err error) {
	bits := l.bits
	if bits == 0 {
		bits = TestBit - 1
	}
	from, to := l.query.After, l.next
	rows, err := c.QueryContext(ctx, l.in.read,
		string(l.query.AccountID), from.Commit, from.Row, to.Commit, to.Row, bits, l.campaign)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	items = make([]formsvc.Event, 0, l.items)
	for rows.Next() {
		var (
			e               formsvc.Event
			stored, created int64
		)
		if err := rows.Scan((*string)(&e.ID), (*string)(&e.AccountID), (*string)(&e.CampaignID), (*string)(&e.ResponseID), &stored, &created,
			&e.Payload, &e.TraceParent); err != nil {
			return nil, err
		}
		e.Type, e.Test = eventOf(stored)
		e.CreatedAt = fromMicros(created)
		items = append(items, e)
	}
	return items, rows.Err()
}

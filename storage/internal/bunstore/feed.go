package bunstore

import (
	"context"
	"errors"

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
	page := formsvc.EventPage{Next: q.After}
	var err error
	if q.AllAccounts {
		q.AccountID = ""
		err = s.ready(ctx)
	} else {
		err = s.ready(ctx, q.AccountID)
	}
	if err != nil {
		return page, noneWhenNotFound(err)
	}
	if err := checkTypes(q.Types...); err != nil {
		return page, err
	}
	statement := map[[2]bool]string{
		{false, false}: s.statements.LookAtEvents, {false, true}: s.statements.LookAtEarlyEvents,
		{true, false}: s.statements.LookAtAllEvents, {true, true}: s.statements.LookAtAllEarlyEvents,
	}[[2]bool{q.AllAccounts, q.Early}]
	q = q.Clamped()
	p := picked{limit: q.Limit, maxBytes: q.MaxBytes, wanted: wanted{eventBits(q.Types), string(q.CampaignID)}, last: q.After}
	// The first step asks for one more than the page holds, to learn whether others follow.
	more, err := s.pickAll(ctx, &p, max(q.Limit+1, 100), statement, string(q.AccountID))
	if err == nil {
		page.Items, err = s.eventsByID(ctx, q.AccountID, p.ids)
	}
	if err != nil {
		return formsvc.EventPage{Next: q.After}, s.backend.Classify(err)
	}
	page.Next, page.More = p.last, more
	return page, nil
}

// wanted says which events are asked for. Tests never are.
type wanted struct {
	bits     int64  // of their types; 0 means all
	campaign string // "" means all
}

func (w *wanted) has(stored int64, campaign string) bool {
	return stored&TestBit == 0 && (w.bits == 0 || stored&w.bits != 0) && (w.campaign == "" || w.campaign == campaign)
}

// picked are the events that fit.
type picked struct {
	wanted
	limit, maxBytes int
	bytes           int // size of their payloads
	ids             []string
	last            formsvc.EventPosition // where to continue
	full            bool
}

// pickAll calls pick with a statement that begins at a position, until there is no room or
// it has looked at feedLook events, the first time at step of them. It reports whether
// others may follow.
func (s *Store) pickAll(ctx context.Context, p *picked, step int, statement, account string) (more bool, err error) {
	for seen := 0; !p.full && seen < feedLook; step *= 4 {
		n := min(step, feedLook-seen)
		got, err := s.pick(ctx, p, statement, account, p.last.Commit, p.last.Row, n)
		if err != nil {
			return false, err
		}
		if seen += got; got < n {
			return p.full, nil
		}
	}
	return true, nil
}

// pick looks at the events that a statement returns (identifier, position, type, campaign
// and size of each) and picks the wanted ones until there is no room. It returns how many
// events the statement returned.
func (s *Store) pick(ctx context.Context, p *picked, statement string, args ...any) (n int, err error) {
	rows, err := s.read.QueryContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		n++
		var (
			id, campaign string
			at           formsvc.EventPosition
			stored       int64
			size         int
		)
		if err := rows.Scan(&id, &at.Commit, &at.Row, &stored, &campaign, &size); err != nil {
			return 0, err
		}
		if p.has(stored, campaign) {
			if len(p.ids) >= p.limit || len(p.ids) > 0 && p.bytes+size > p.maxBytes {
				p.full = true
				return n, nil
			}
			p.ids, p.bytes = append(p.ids, id), p.bytes+size
		}
		p.last = at
	}
	return n, rows.Err()
}

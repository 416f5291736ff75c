package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/formsvc"
)

// checkEvents returns an error if the events can't be raised. Call it before changing
// anything. The caller holds s.mu.
func (s *Store) checkEvents(events []formsvc.Event) error {
	seen := make(map[formsvc.ID]bool, len(events))
	for i := range events {
		e := &events[i]
		if _, err := stored(e); err != nil {
			return err
		}
		if _, err := s.account(e.AccountID); err != nil {
			return err
		}
		if s.events[e.ID] != nil || seen[e.ID] {
			return formsvc.ErrConflict
		}
		seen[e.ID] = true
	}
	return nil
}

// raise stores the events and queues a delivery of each, due at once, for every webhook
// that listens. The caller holds s.mu.
func (s *Store) raise(events []formsvc.Event) {
	for i := range events {
		s.keep(&events[i])
		for _, to := range s.endpoints.rows {
			if to.Listens(&events[i]) {
				to.put(&events[i])
				s.wakeUp()
			}
		}
	}
}

// keep stores an event with its account.
func (s *Store) keep(in *formsvc.Event) {
	s.commits++
	e := &event{Event: copyOf(in), position: s.commits}
	e.Confirm, e.Retried, e.To = false, false, ""
	s.events[e.ID] = e
	a := s.accounts.rows[e.AccountID]
	a.events = append(a.events, e)
}

// Events implements [formsvc.Store]. One mutex orders all changes, and a position is
// an event's number in that order.
func (s *Store) Events(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	return locked(ctx, s, func() (formsvc.EventPage, error) {
		at, err := position(q.After)
		if err != nil {
			return formsvc.EventPage{}, err
		}
		a, _ := s.accountOrNone(q.AccountID)
		return pageOf(a.after(at), q), nil
	})
}

// AllEvents implements [formsvc.Store].
func (s *Store) AllEvents(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	return locked(ctx, s, func() (formsvc.EventPage, error) {
		at, err := position(q.After)
		if err != nil {
			return formsvc.EventPage{}, err
		}
		var events []*event
		for _, a := range s.accounts.rows {
			events = append(events, a.after(at)...)
		}
		slices.SortFunc(events, func(a, b *event) int { return cmp.Compare(a.position, b.position) })
		return pageOf(events, q), nil
	})
}

// position returns the position that a cursor names, as a decimal number.
func position(c formsvc.Cursor) (int64, error) {
	if c == "" {
		return 0, nil
	}
	at, err := strconv.ParseInt(string(c), 10, 64)
	if err != nil || cursor(at) != c {
		return 0, fmt.Errorf("memory: %.50q is not a position of events: %w", c, formsvc.ErrInvalid)
	}
	return at, nil
}

func cursor(at int64) formsvc.Cursor { return formsvc.Cursor(strconv.FormatInt(at, 10)) }

// after returns the account's events after a position.
func (a *account) after(at int64) []*event {
	start, _ := slices.BinarySearchFunc(a.events, at+1, func(e *event, position int64) int {
		return cmp.Compare(e.position, position)
	})
	return a.events[start:]
}

// pageOf returns the wanted events after q.After, up to the limits of q.
func pageOf(events []*event, q formsvc.EventQuery) formsvc.EventPage {
	q = q.Clamped()
	page := formsvc.EventPage{Next: q.After}
	size := 0
	for _, e := range events {
		if wanted(e, q.CampaignID, q.Types) {
			size += len(e.Payload)
			if len(page.Items) == q.Limit || len(page.Items) > 0 && size > q.MaxBytes {
				page.More = true
				break
			}
			page.Items = append(page.Items, copyOf(&e.Event))
		}
		page.Next = cursor(e.position)
	}
	return page
}

// wanted reports whether an event is of the campaign and of one of the types, and isn't a
// test. An empty campaign or list means all.
func wanted(e *event, campaign formsvc.ID, types []formsvc.EventType) bool {
	return !e.Test && (campaign == "" || campaign == e.CampaignID) && (len(types) == 0 || slices.Contains(types, e.Type))
}

// Event implements [formsvc.Store].
func (s *Store) Event(ctx context.Context, accountID, id formsvc.ID) (formsvc.Event, error) {
	return read(ctx, s, func(id formsvc.ID) (*formsvc.Event, error) {
		if e := s.events[id]; e != nil && e.AccountID == accountID {
			return &e.Event, nil
		}
		return nil, formsvc.ErrNotFound
	}, id, copyOf)
}

// RecentEvents implements [formsvc.Store].
func (s *Store) RecentEvents(ctx context.Context, q formsvc.RecentQuery) ([]formsvc.Event, error) {
	return read(ctx, s, s.accountOrNone, q.AccountID, func(a *account) []formsvc.Event {
		b := bounded{limit: q.Limit}
		for _, e := range slices.Backward(a.events) {
			if wanted(e, q.CampaignID, q.Types) && !b.add(&e.Event) {
				break
			}
		}
		return b.events
	})
}

// EventsAbout implements [formsvc.Store].
func (s *Store) EventsAbout(ctx context.Context, key formsvc.ResponseKey, limit int) ([]formsvc.Event, error) {
	return read(ctx, s, s.response, key, func(*response) []formsvc.Event {
		b := bounded{limit: limit}
		for _, e := range s.accounts.rows[key.AccountID].events {
			if e.CampaignID == key.CampaignID && e.ResponseID == key.ID && !e.Test && !b.add(&e.Event) {
				break
			}
		}
		return b.events
	})
}

// bounded is a list of events with a limit for their number, and one for the bytes of
// their payloads that the first event may exceed.
type bounded struct {
	limit, bytes int
	events       []formsvc.Event
}

// add adds a copy of an event, or reports that there is no room.
func (b *bounded) add(e *formsvc.Event) bool {
	b.bytes += len(e.Payload)
	if len(b.events) >= b.limit || len(b.events) > 0 && b.bytes > formsvc.DefaultEventBytes {
		return false
	}
	b.events = append(b.events, copyOf(e))
	return true
}

// forget removes an event with everything that belongs to it, and returns the number of
// records removed.
func (s *Store) forget(e *event) int {
	delete(s.events, e.ID)
	rows := 1
	for _, to := range s.endpoints.rows {
		id := formsvc.DeliveryID(e.ID, to.ID)
		if d, err := to.deliveries.get(id); err == nil {
			if d.State == formsvc.DeliveryPending {
				to.unwait(d)
			}
			to.deliveries.remove(id)
			rows += 1 + len(d.Log)
		}
	}
	return rows + pruneTable(&s.notices, len(s.notices.ids), func(n *notice) bool { return n.EventID == e.ID })
}

package formsvc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// An EventPosition is a place in an account's events. The zero position is
// before the first. Its fields mean something to the store only. To keep one, use
// [EventPosition.String] and [ParseEventPosition], or any encoding that takes texts.
type EventPosition struct{ Commit, Row int64 }

// String returns the position as a text of at most 41 characters, "0.0" for the zero
// position.
func (p EventPosition) String() string {
	return strconv.FormatInt(p.Commit, 10) + "." + strconv.FormatInt(p.Row, 10)
}

// ParseEventPosition returns the position of a text that String made, or of "", which
// is the zero position. Every other text is [ErrInvalid].
func ParseEventPosition(s string) (EventPosition, error) {
	if s == "" {
		return EventPosition{}, nil
	}
	commit, row, _ := strings.Cut(s, ".")
	var (
		p   EventPosition
		err error
	)
	p.Commit, _ = strconv.ParseInt(commit, 10, 64)
	p.Row, _ = strconv.ParseInt(row, 10, 64)
	if p.String() != s {
		p, err = EventPosition{}, fmt.Errorf("formsvc: %.50q is not the position of an event: %w", s, ErrInvalid)
	}
	return p, err
}

// MarshalText returns what String does. Its error is always nil.
func (p EventPosition) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText sets the position as [ParseEventPosition] reads it.
func (p *EventPosition) UnmarshalText(text []byte) (err error) {
	*p, err = ParseEventPosition(string(text))
	return err
}

// EventQuery chooses events of one account.
type EventQuery struct {
	AccountID  ID
	CampaignID ID            // "" means all
	Types      []EventType   // none means all
	After      EventPosition // where to go on
	Limit      int           // 1 to MaxLimit; 0 means DefaultLimit, more is cut to MaxLimit
	// MaxBytes ends the page early: at the event whose payload would exceed it,
	// but not before the first. 0 means DefaultEventBytes.
	MaxBytes int
	// Early also shows events that others may still come before. Who wants all that
	// there are now needs them; who wants to go on later must do without.
	Early bool
	// AllAccounts returns the events of all accounts; AccountID is not used then.
	AllAccounts bool
}

// Clamped returns q with its limits within bounds.
func (q EventQuery) Clamped() EventQuery {
	q.Limit = PageQuery{Limit: q.Limit}.Clamped().Limit
	if q.MaxBytes <= 0 {
		q.MaxBytes = DefaultEventBytes
	}
	return q
}

// An EventPage is a part of an account's events, oldest first.
type EventPage struct {
	Items []Event
	// Next is where to go on, also when nothing follows yet: it is after the last
	// item, or as far as the query looked without finding any.
	Next EventPosition
	More bool // whether events followed when the page was made
}

// Events shows what happened. It is safe for concurrent use.
type Events struct{ s *core }

// List returns the events after a position, in the order in which they were committed;
// for one response that is the order of its changes. Going on from [EventPage.Next]
// misses no event, also if the transaction of an earlier one commits later; test
// events are not among them. Events are kept for [Options.Retention].
func (e Events) List(ctx context.Context, q EventQuery) (_ EventPage, err error) {
	defer e.s.span(&ctx, "Events.List").end(&err)
	page, err := e.s.store.Events(ctx, q.Clamped())
	if err != nil {
		return EventPage{}, fmt.Errorf("formsvc: events: %w", err)
	}
	return page, nil
}

// RecentQuery chooses the newest events of one account.
type RecentQuery struct {
	AccountID  ID
	CampaignID ID          // "" means all
	Types      []EventType // none means all
	Limit      int         // cut to 1 to MaxRecent
}

const maxAbout = 1000

// Recent returns the newest events that are asked for, test events apart, newest
// first, and fewer than the limit when their payloads would have more than
// [DefaultEventBytes]. It is for people to look at and for tools that want a sample,
// and costs the same however many events there are: an event with thousands of others
// after it may not be found. Whoever must miss none uses [Events.List]. An unknown
// account or campaign has none.
func (e Events) Recent(ctx context.Context, q RecentQuery) (_ []Event, err error) {
	defer e.s.span(&ctx, "Events.Recent").end(&err)
	q.Limit = min(max(q.Limit, 1), MaxRecent)
	events, err := e.s.store.RecentEvents(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("formsvc: recent events: %w", err)
	}
	return events, nil
}

// Get returns an event, which may be a test, or [ErrNotFound].
func (e Events) Get(ctx context.Context, account, id ID) (_ Event, err error) {
	defer e.s.span(&ctx, "Events.Get").end(&err)
	event, err := e.s.store.Event(ctx, account, id)
	if err != nil {
		return Event{}, fmt.Errorf("formsvc: event: %w", err)
	}
	return event, nil
}

// About returns the events about a response that are still kept, oldest first: at
// most limit, which is cut to 1 to 1000, and fewer when their payloads would have
// more than [DefaultEventBytes]. It fails with [ErrNotFound] when there is no such
// response; events about one that was deleted are found by [Events.List] only.
func (e Events) About(ctx context.Context, key ResponseKey, limit int) (_ []Event, err error) {
	defer e.s.span(&ctx, "Events.About").end(&err)
	events, err := e.s.store.EventsAbout(ctx, key, min(max(limit, 1), maxAbout))
	if err != nil {
		return nil, fmt.Errorf("formsvc: events about a response: %w", err)
	}
	return events, nil
}

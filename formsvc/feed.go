package formsvc

import (
	"context"
	"time"
)

// A Cursor is a position in a list of events; "" is before the first one. Store it, compare it for
// equality, and pass it back to the method that returned it. Only the store knows what the text means:
// up to 50 bytes of printable ASCII.
type Cursor string

// EventQuery chooses events for [Events.List], [Events.Follow] and [Events.FollowAll].
type EventQuery struct {
	AccountID  ID
	CampaignID ID          // "" means all
	Types      []EventType // none means all
	After      Cursor      // continue after this position; "" means before the oldest stored event
	Limit      int         // 1 to MaxLimit; 0 means DefaultLimit, values above MaxLimit are clamped
	// MaxBytes limits the sum of the payloads. A page has at least one event if there is one. 0
	// means DefaultEventBytes.
	MaxBytes int
	// Early includes events that running transactions may still precede. Set it to read everything
	// there is now; leave it unset to continue from Next later. Follow ignores it.
	Early bool
	// Poll is Follow's interval for finding events that were committed by other processes or in the
	// host application's transactions. 0 means DefaultPoll. List ignores it.
	Poll time.Duration
}

// DefaultPoll is the default of [EventQuery.Poll].
const DefaultPoll = time.Second

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
	// Next is the position to continue from, even if nothing follows yet: after the last item, or
	// as far as the query searched.
	Next Cursor
	More bool // whether more events followed when the page was read
}

// Events reads and follows events. It is safe for concurrent use.
type Events struct{ s *core }

// List returns the events after a position in commit order; for one response that is the order of
// its changes. Continuing from [EventPage.Next] misses no event, even if the transaction of an
// earlier one commits later. Test events are left out. Events are kept for [Options.Retention].
func (e Events) List(ctx context.Context, q EventQuery) (_ EventPage, err error) {
	defer wrap(&err, "events")
	return e.s.store.Events(ctx, q.Clamped())
}

// RecentQuery chooses the newest events of one account.
type RecentQuery struct {
	AccountID  ID
	CampaignID ID          // "" means all
	Types      []EventType // none means all
	Limit      int         // clamped to 1 to MaxRecent
}

const maxAbout = 1000

// Recent returns the newest matching events, newest first, without test events. It returns fewer
// than the limit if their payloads would exceed [DefaultEventBytes]. Use it to show or sample
// events: its cost doesn't depend on their number, but it may miss an event that thousands of
// others follow. To read every event, use [Events.List]. An unknown account or campaign has none.
func (e Events) Recent(ctx context.Context, q RecentQuery) (_ []Event, err error) {
	defer wrap(&err, "recent events")
	q.Limit = min(max(q.Limit, 1), MaxRecent)
	return e.s.store.RecentEvents(ctx, q)
}

// Get returns an event, which may be a test event, or [ErrNotFound].
func (e Events) Get(ctx context.Context, account, id ID) (_ Event, err error) {
	defer wrap(&err, "event")
	return e.s.store.Event(ctx, account, id)
}

// About returns the stored events about a response, oldest first, up to limit, which is clamped to
// 1 to 1000. It returns fewer if their payloads would exceed [DefaultEventBytes]. It fails with
// [ErrNotFound] if there is no such response; events about a deleted response are in [Events.List]
// only.
func (e Events) About(ctx context.Context, key ResponseKey, limit int) (_ []Event, err error) {
	defer wrap(&err, "events about a response")
	return e.s.store.EventsAbout(ctx, key, min(max(limit, 1), maxAbout))
}

package formsvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// A Cursor is a position in a list of events; "" is before the first one. Store it, compare it for equality, and pass
// it back to the method that returned it. Only the store knows what the text means: up to 50 bytes of printable ASCII.
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
	// OnError lets Follow go on after an error of its handle. The events of that call are handed out again, one at a time, and OnError
	// gets each that fails then: nil skips it, an error ends Follow and is returned. It may call handle's work again itself, after a
	// pause. nil ends Follow at the first error. List ignores it.
	OnError func(ctx context.Context, event Event, err error) error
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

// About returns the stored events about a response, oldest first, up to limit, which is clamped to 1 to 1000. It
// returns fewer if their payloads would exceed [DefaultEventBytes]. It fails with [ErrNotFound] if there is no such
// response; events about a deleted response are in [Events.List] only.
func (e Events) About(ctx context.Context, key ResponseKey, limit int) (_ []Event, err error) {
	defer wrap(&err, "events about a response")
	return e.s.store.EventsAbout(ctx, key, min(max(limit, 1), maxAbout))
}

const (
	// firstLook is the first delay before Follow looks again for an announced event that the feed
	// doesn't show yet, because an older transaction is still running.
	firstLook = 10 * time.Millisecond
	// lookTimeout limits one look at a store that doesn't reply.
	lookTimeout = 30 * time.Second
	// maxOutagePause is the longest pause before Follow retries an unavailable store.
	maxOutagePause = 5 * time.Second
)

// Follow calls handle with the events after q.After, and then with new ones, until ctx ends; then it returns nil. Use
// it to act on events in Go instead of by webhook. Several processes may follow: each gets every event.
//
// handle gets at least one event, oldest first, after their transactions have committed, and the position after the
// last of them. Store that position, and start from it after a restart; in the same transaction as the work, to process
// each event exactly once. No event is skipped, however late its transaction commits, unless the program is down for
// longer than [Options.Retention]. Calls don't overlap; handle may take any time and may call the Service.
//
// Without such a transaction, handle gets an event at least once: again if the program ends before the position is stored, or if
// handle fails for a later event of the same call and there is an [EventQuery.OnError].
//
// Follow looks at once after this Service, or a view of it, commits an event, and after
// [Service.Notify]; it finds other events by polling.
//
// An error of handle ends Follow and is returned unchanged, except the error of ctx, unless OnError decides otherwise. While the
// store is unavailable ([ErrUnavailable]), Follow logs that and retries every few seconds. It fails
// with [ErrNotFound] if there is no such account or campaign, with [ErrInvalid] for an invalid query,
// and on a Service that is bound to a transaction ([Service.With]).
func (e Events) Follow(
	ctx context.Context, q EventQuery, handle func(ctx context.Context, events []Event, next Cursor) error,
) error {
	return e.follow(ctx, q, false, handle)
}

// FollowAll is [Events.Follow] for the events of all accounts, in one order; leave AccountID and
// CampaignID empty. Its positions are not valid for Follow, nor the reverse.
//
// On Postgres, a look costs one index lookup for each account: some milliseconds for a thousand
// accounts. To catch up on many accounts faster, set a larger Limit.
func (e Events) FollowAll(
	ctx context.Context, q EventQuery, handle func(ctx context.Context, events []Event, next Cursor) error,
) error {
	return e.follow(ctx, q, true, handle)
}

func (e Events) follow(ctx context.Context, q EventQuery, all bool, handle func(context.Context, []Event, Cursor) error) error {
	if err := q.check(all); err != nil {
		return fmt.Errorf("formsvc: follow: %w", err)
	}
	if e.s.bound {
		return errors.New("formsvc: follow: this service is bound to a transaction; follow with the one it was made from")
	}
	f := &follower{core: e.s, query: q.Clamped(), heard: make(chan struct{}, 1)}
	f.query.Poll, f.query.Early = cmp.Or(q.Poll, DefaultPoll), false
	e.s.followers.Store(f, nil)
	defer e.s.followers.Delete(f)
	f.delay = f.soon() // events committed just before were not announced to this follower
	err := f.begin(ctx)
	for err == nil {
		err = f.step(ctx, handle)
	}
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

func (q *EventQuery) check(all bool) error {
	switch {
	case all && q.AccountID+q.CampaignID != "":
		return fmt.Errorf("AccountID and CampaignID must be empty for all events: %w", ErrInvalid)
	case !all && q.AccountID == "":
		return fmt.Errorf("AccountID is required: %w", ErrInvalid)
	case q.Poll < 0:
		return fmt.Errorf("a negative Poll: %w", ErrInvalid)
	}
	for _, t := range q.Types {
		if !slices.Contains(webhook.KnownEventTypes(), t) {
			return fmt.Errorf("there is no event type %q: %w", t, ErrInvalid)
		}
	}
	return nil
}

// A follower is one call of Follow.
type follower struct {
	*core
	query EventQuery    // without an AccountID: of all accounts
	heard chan struct{} // has a token if an event was committed since the last look
	delay time.Duration // before the next look; below Poll, there may be an event that the feed doesn't show yet
	again int           // events of a failed call that are handed out one at a time
}

// soon returns the first delay.
func (f *follower) soon() time.Duration { return min(firstLook, f.query.Poll) }

// begin makes sure that the account and campaign exist.
func (f *follower) begin(ctx context.Context) error {
	if f.query.AccountID == "" {
		return nil
	}
	return f.patiently(ctx, func(ctx context.Context) error {
		if _, err := f.store.Account(ctx, f.query.AccountID); err != nil || f.query.CampaignID == "" {
			return err
		}
		_, err := f.store.Campaign(ctx, CampaignKey{AccountID: f.query.AccountID, ID: f.query.CampaignID})
		return err
	})
}

// step passes on the next events, or waits until there may be some.
func (f *follower) step(ctx context.Context, handle func(context.Context, []Event, Cursor) error) error {
	var page EventPage
	query := f.query
	if f.again > 0 {
		query.Limit = 1
	}
	read := f.store.Events
	if f.query.AccountID == "" {
		read = f.store.AllEvents
	}
	if err := f.patiently(ctx, func(ctx context.Context) (err error) {
		page, err = read(ctx, query)
		return err
	}); err != nil {
		return err
	}
	if len(page.Items) > 0 {
		err := handle(ctx, page.Items, page.Next)
		if err != nil && f.query.OnError != nil && ctx.Err() == nil {
			if len(page.Items) > 1 {
				f.again = len(page.Items)
				return nil
			}
			err = f.query.OnError(ctx, page.Items[0], err)
		}
		if err != nil {
			return err
		}
		f.delay = f.query.Poll
	}
	if f.again -= len(page.Items); !page.More {
		f.again = 0
	}
	f.query.After = page.Next
	if page.More {
		return ctx.Err()
	}
	return f.wait(ctx)
}

// wait waits until there may be an event; it returns the error of ctx.
func (f *follower) wait(ctx context.Context) error {
	timer := time.NewTimer(f.delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.heard:
		awaited := f.delay < f.query.Poll // it has just looked and found nothing
		if f.delay = f.soon(); awaited && !pause(ctx, f.delay) {
			return ctx.Err()
		}
	case <-timer.C:
		f.delay = min(2*f.delay, f.query.Poll)
	}
	return nil
}

// patiently retries do until the store is available.
func (f *follower) patiently(ctx context.Context, do func(context.Context) error) error {
	for rest := f.query.Poll; ; rest *= 2 {
		look, cancel := context.WithTimeout(ctx, lookTimeout)
		err := do(look)
		cancel()
		late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		switch {
		case err == nil:
			return nil
		case !late && !errors.Is(err, ErrUnavailable):
			return fmt.Errorf("formsvc: follow: %w", err)
		}
		rest = min(rest, maxOutagePause)
		f.Logger.LogAttrs(ctx, slog.LevelWarn, "following events failed; it goes on when the store is available",
			slog.Any("error", err), slog.Duration("pause", rest))
		if !pause(ctx, rest) {
			return ctx.Err()
		}
	}
}

// tell wakes the followers of an account, or all followers if account is "".
func (c *core) tell(account ID) {
	c.followers.Range(func(key, _ any) bool {
		one, ok := key.(*follower)
		if ok && (account == "" || one.query.AccountID == "" || one.query.AccountID == account) {
			select {
			case one.heard <- struct{}{}:
			default: // it will look anyway
			}
		}
		return true
	})
}

// raised announces an event of the account to followers. In a bound transaction it does nothing:
// the host application calls [Service.Notify] after the commit.
func (c *core) raised(account ID) {
	if !c.bound {
		c.tell(account)
	}
}

// Notify makes [Events.Follow] and the delivery engine of this process look for events at once.
// Call it on the unbound Service after you commit a transaction in which a bound one
// ([Service.With]) raised events. Without it they find the events at their next poll.
func (s *Service) Notify() {
	s.core.tell("")
	s.core.store.Notify()
}

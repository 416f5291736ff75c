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

const (
	// firstLook is the first delay before Follow looks again for an announced event that the feed
	// doesn't show yet, because an older transaction is still running. If a look takes long, the
	// delay is a multiple of that time, to keep load off the store.
	firstLook  = 10 * time.Millisecond
	looksApart = 4
	// lookTimeout limits one look at a store that doesn't reply.
	lookTimeout = 30 * time.Second
	// maxOutagePause is the longest pause before Follow retries an unavailable store.
	maxOutagePause = 5 * time.Second
)

// Follow calls handle with the events after q.After, and then with new ones, until ctx ends; then
// it returns nil. Use it to act on events in Go instead of by webhook. Several processes may follow:
// each gets every event.
//
// handle gets at least one event, oldest first, after their transactions have committed, and the
// position after the last of them. Store that position, and start from it after a restart; in the same
// transaction as the work, to process each event exactly once. No event is skipped, however late its
// transaction commits, unless the program is down for longer than [Options.Retention]. Calls don't
// overlap; handle may take any time and may call the Service.
//
// Follow looks at once after this Service, or a view of it, commits an event, and after
// [Service.Notify]; it finds other events by polling.
//
// An error of handle ends Follow and is returned unchanged, except the error of ctx. While the
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
	took  time.Duration // by the last look
	delay time.Duration // before the next look; below Poll, there may be an event that the feed doesn't show yet
}

// soon returns the first delay.
func (f *follower) soon() time.Duration { return min(max(firstLook, looksApart*f.took), f.query.Poll) }

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
	read := f.store.Events
	if f.query.AccountID == "" {
		read = f.store.AllEvents
	}
	if err := f.patiently(ctx, func(ctx context.Context) (err error) {
		began := time.Now()
		page, err = read(ctx, f.query)
		f.took = time.Since(began)
		return err
	}); err != nil {
		return err
	}
	if len(page.Items) > 0 {
		if err := handle(ctx, page.Items, page.Next); err != nil {
			return err
		}
		f.delay = f.query.Poll
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

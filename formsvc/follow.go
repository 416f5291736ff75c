package formsvc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// DefaultPoll is the default of [FollowQuery.Poll].
const DefaultPoll = time.Second

// A FollowQuery chooses the events that [Events.Follow] hands out.
type FollowQuery struct {
	// AccountID says whose events. There must be such an account, or else AllAccounts.
	AccountID ID
	// AllAccounts follows every account, in one order and with one position;
	// [Event.AccountID] says whose an event is. A position is good for one account or
	// for all, as it was made. Defaults to the account of AccountID.
	AllAccounts bool
	// CampaignID leaves out the events of other campaigns. Defaults to all campaigns.
	CampaignID ID
	// Types leaves out the events of other types. Defaults to all types.
	Types []EventType
	// After is where to go on: the last position that was kept. Defaults to before the
	// oldest event that is still there ([Options.Retention]).
	After EventPosition
	// Limit is how many events are handed out at once at most; it is cut to MaxLimit.
	// Defaults to DefaultLimit.
	Limit int
	// MaxBytes is how many bytes of payloads they have together at most; a single one
	// may be larger. Defaults to [DefaultEventBytes].
	MaxBytes int
	// Poll is how often to look for what was committed elsewhere: by other processes,
	// or in a transaction of the host's. Defaults to [DefaultPoll].
	Poll time.Duration
}

const (
	// firstLook is how soon Follow looks again for an event that it was told of and
	// that the feed doesn't show yet, since an older transaction is still running; or
	// several times as long as a look takes, so that it keeps no store busy.
	firstLook  = 10 * time.Millisecond
	looksApart = 4
	// lookTimeout bounds one look at a store that doesn't answer.
	lookTimeout = 30 * time.Second
	// maxOutagePause is how long Follow leaves a store alone that could not answer.
	maxOutagePause = 5 * time.Second
)

// Follow calls handle with the events after q.After, and then with those that come,
// until ctx ends; then it returns nil. It is how a program acts on events in Go, beside
// webhooks.
//
// handle is given at least one event, oldest first, after its transaction has
// committed, and the position that is behind the last of them: keep it
// ([EventPosition.String]), and begin there after a restart. No event is left out,
// however late its transaction commits, nor while the program is down, unless it is
// down for longer than [Options.Retention]. Who keeps the position in the transaction
// in which he does what the events ask for does it once. Who keeps it
// afterwards may see the last events again. Calls come one after the other; handle may
// take as long as it likes and may call the Service. Who begins without a position is
// given all events that are still kept; [Event.CreatedAt] tells the old ones.
//
// Follow looks at once when this Service, or a view of it, commits an event, and after
// [Service.Notify]; what others commit it finds by polling. It starts no goroutine.
// Several processes may follow: each sees every event.
//
// An error of handle ends Follow and is returned as it is, except that of the end of
// ctx. While the store is not available ([ErrUnavailable]) Follow logs that and tries
// again every few seconds; every other error of the store is returned. It fails with
// [ErrNotFound] when there is no such account or campaign, with [ErrInvalid] for a query
// that contradicts itself, and on a Service that is bound to a transaction
// ([Service.With]), which will be over long before.
//
// On Postgres, a look at one account costs one look-up in an index, and one at all
// accounts one for each of them: some milliseconds for a thousand. Who has fallen far
// behind in many accounts catches up faster with a larger Limit.
func (e Events) Follow(
	ctx context.Context, q FollowQuery, handle func(ctx context.Context, events []Event, next EventPosition) error,
) error {
	if err := q.check(); err != nil {
		return fmt.Errorf("formsvc: follow: %w", err)
	}
	if e.s.bound {
		return errors.New("formsvc: follow: this service is bound to a transaction; follow with the one it was made from")
	}
	f := &follower{core: e.s, query: q, heard: make(chan struct{}, 1)}
	if q.Poll == 0 {
		f.query.Poll = DefaultPoll
	}
	e.s.followers.join(f)
	defer e.s.followers.leave(f)
	f.due = f.soon() // what was committed just before was told to nobody
	err := f.begin(ctx)
	for err == nil {
		err = f.step(ctx, handle)
	}
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

func (q *FollowQuery) check() error {
	switch {
	case q.AllAccounts && q.AccountID != "":
		return fmt.Errorf("AccountID and AllAccounts exclude each other: %w", ErrInvalid)
	case !q.AllAccounts && q.AccountID == "":
		return fmt.Errorf("AccountID, or AllAccounts, is required: %w", ErrInvalid)
	case q.AllAccounts && q.CampaignID != "":
		return fmt.Errorf("CampaignID needs the AccountID that it belongs to: %w", ErrInvalid)
	case q.Poll < 0:
		return fmt.Errorf("a negative Poll: %w", ErrInvalid)
	}
	for _, t := range q.Types {
		if !slices.Contains(webhook.EventTypes(), t) {
			return fmt.Errorf("there is no event type %q: %w", t, ErrInvalid)
		}
	}
	return nil
}

// A follower is one call of Follow.
type follower struct {
	*core
	query FollowQuery
	heard chan struct{} // has a token when an event was committed since the last look
	took  time.Duration // by the last look
	// due is when to look again for an event that the feed may not show yet; 0 when
	// there is no reason to think so.
	due time.Duration
}

// soon returns when to look for an event that wasn't there yet.
func (f *follower) soon() time.Duration { return max(firstLook, looksApart*f.took) }

// begin makes sure that what is to be followed exists.
func (f *follower) begin(ctx context.Context) error {
	if f.query.AllAccounts {
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

// step hands out what there is, or waits until there may be something.
func (f *follower) step(ctx context.Context, handle func(context.Context, []Event, EventPosition) error) error {
	var page EventPage
	if err := f.patiently(ctx, func(ctx context.Context) (err error) {
		began := time.Now()
		page, err = f.look(ctx)
		f.took = time.Since(began)
		return err
	}); err != nil {
		return err
	}
	if len(page.Items) > 0 {
		if err := handle(ctx, page.Items, page.Next); err != nil {
			return err
		}
		f.due = 0
	}
	f.query.After = page.Next
	if page.More {
		return ctx.Err()
	}
	return f.wait(ctx)
}

// look returns the next events.
func (f *follower) look(ctx context.Context) (EventPage, error) {
	q := EventQuery{
		AccountID: f.query.AccountID, CampaignID: f.query.CampaignID, Types: f.query.Types, After: f.query.After,
		Limit: f.query.Limit, MaxBytes: f.query.MaxBytes, AllAccounts: f.query.AllAccounts,
	}
	return f.store.Events(ctx, q.Clamped())
}

// wait returns when there may be an event, or with the error of ctx.
func (f *follower) wait(ctx context.Context) error {
	awaited, d := f.due > 0, f.query.Poll
	if awaited {
		d = min(f.due, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.heard:
		f.due = f.soon()
		if awaited && !pause(ctx, min(f.due, d)) { // it has just looked, for nothing
			return ctx.Err()
		}
	case <-timer.C:
		if f.due *= 2; f.due > f.query.Poll {
			f.due = 0
		}
	}
	return nil
}

// patiently calls do until the store is available.
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
		f.logger.LogAttrs(ctx, slog.LevelWarn, "following events failed; it goes on when the store is available",
			slog.Any("error", err), slog.Duration("pause", rest))
		if !pause(ctx, rest) {
			return ctx.Err()
		}
	}
}

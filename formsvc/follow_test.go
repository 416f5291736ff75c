package formsvc_test

import (
	"context"

	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// never is a Poll that is longer than any test.
const never = 24 * time.Hour

// A handed is one call of the handler.
type handed struct {
	events []formsvc.Event
	next   formsvc.Cursor
}

// follow runs Follow, or FollowAll without an AccountID, in the background and passes on the handler's arguments. stop ends it and
// returns its error.
func follow(t *testing.T, svc *formsvc.Service, q formsvc.EventQuery) (calls <-chan handed, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	passed, result := make(chan handed, 1000), make(chan error, 1)
	run := svc.Events.Follow
	if q.AccountID == "" {
		run = svc.Events.FollowAll
	}
	go func() {
		defer close(passed)
		result <- run(ctx, q, func(_ context.Context, events []formsvc.Event, next formsvc.Cursor) error {
			passed <- handed{slices.Clone(events), next}
			return nil
		})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	t.Cleanup(func() { _ = stop() })
	return passed, stop
}

// wantTypes reads calls until there were as many events as wanted, and returns the
// last position.
func wantTypes(t *testing.T, calls <-chan handed, want ...formsvc.EventType) (at formsvc.Cursor) {
	t.Helper()
	var got []formsvc.EventType
	guard := time.After(2 * time.Minute)
	for len(got) < len(want) {
		select {
		case call := <-calls:
			if len(call.events) == 0 {
				t.Fatalf("Follow ended, or the handler was called without an event, after %v, want %v", got, want)
			}
			got, at = append(got, eventTypes(call.events)...), call.next
		case <-guard:
			t.Fatalf("nothing more came after %v, want %v", got, want)
		}
	}
	equalAll(t, got, want, "handed out %v")
	return at
}

// TestFollowEveryEventAtOnce checks that each call that raises events wakes followers that don't
// poll.
func TestFollowEveryEventAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *formsvc.Options) { o.Blobs = memblob.New() })
	c := w.campaign()
	calls, stop := follow(t, w.svc, formsvc.EventQuery{AccountID: w.account, Poll: never})
	all, _ := follow(t, w.svc, formsvc.EventQuery{Poll: never})
	want := func(types ...formsvc.EventType) {
		t.Helper()
		wantTypes(t, calls, types...)
		wantTypes(t, all, types...)
	}
	r := w.submitted(&c)
	want(webhook.ResponseCreated)
	w.updated(&r, formsvc.ResponsePatch{Status: new(formsvc.StatusCompleted)})
	want(webhook.ResponseStatusChanged, webhook.ResponseCompleted)
	must(w.svc.Files.Upload(w.ctx, r.Key(), formsvc.FileInput{Content: strings.NewReader("a")}))
	want(webhook.FileUploaded)
	must(w.svc.As(formsvc.Actor{Name: "somebody"}).Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: ada()}))
	want(webhook.SignatureCompleted)
	wantError(t, w.svc.Responses.Delete(w.ctx, r.Key(), nil), nil)
	want(webhook.ResponseDeleted)
	if err := stop(); err != nil {
		t.Errorf("Follow ended with %v, want nil", err)
	}
}

// TestFollowContinuesFromAPosition continues from a position that was stored as text.
func TestFollowContinuesFromAPosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign()
	for range 7 {
		w.submitted(&c)
	}
	created := slices.Repeat([]formsvc.EventType{webhook.ResponseCreated}, 10)
	calls, stop := follow(t, w.svc, formsvc.EventQuery{AccountID: w.account, Limit: 3, Poll: never})
	at := wantTypes(t, calls, created[:7]...)
	wantError(t, stop(), nil)
	for range 3 {
		w.submitted(&c) // without a follower
	}
	calls, _ = follow(t, w.neighbour(), formsvc.EventQuery{AccountID: w.account, After: at, Poll: never})
	wantTypes(t, calls, created[:3]...)
}

// TestFollowFindsEventsOfOtherNodes finds commits of another node by polling, and by Notify.
func TestFollowFindsEventsOfOtherNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign()
	node := w.neighbour()
	polls, _ := follow(t, node, formsvc.EventQuery{AccountID: w.account, Poll: time.Millisecond})
	told, _ := follow(t, node, formsvc.EventQuery{Poll: never})
	w.submitted(&c)
	wantTypes(t, polls, webhook.ResponseCreated)
	node.Notify()
	wantTypes(t, told, webhook.ResponseCreated)
	w.svc.Notify()
	equal(t, w.store.count("Notify"), 1, "the store was told %d times")
}

// TestFollowFilters checks the filters of a query.
func TestFollowFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.campaign(), w.campaign()
	strange := must(w.svc.Campaigns.Create(w.ctx, w.second(), formsvc.CampaignInput{Title: "Another's"}))
	typed, _ := follow(t, w.svc, formsvc.EventQuery{AccountID: w.account, Types: []formsvc.EventType{webhook.ResponseCompleted}, Poll: never})
	one, _ := follow(t, w.svc, formsvc.EventQuery{AccountID: w.account, CampaignID: b.ID, Poll: never})
	all, _ := follow(t, w.svc, formsvc.EventQuery{Poll: never})
	w.submitted(&strange)
	w.submitted(&a)
	r := w.submitted(&b)
	w.updated(&r, formsvc.ResponsePatch{Status: new(formsvc.StatusCompleted)})
	wantTypes(t, typed, webhook.ResponseCompleted)
	wantTypes(t, one, webhook.ResponseCreated, webhook.ResponseStatusChanged, webhook.ResponseCompleted)
	wantTypes(t, all, webhook.ResponseCreated, webhook.ResponseCreated, webhook.ResponseCreated, webhook.ResponseStatusChanged,
		webhook.ResponseCompleted)
}

// TestFollowWaitsForLateEvents announces an event that the feed shows only some looks later, as if
// an older transaction were still running.
func TestFollowWaitsForLateEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign()
	var late atomic.Int64
	w.store.disturb(func(method string, _ int) error {
		if method == "Events" && (late.Load() == 0 || late.Add(-1) > 0) {
			return errNothing
		}
		return nil
	})
	calls, _ := follow(t, w.svc, formsvc.EventQuery{AccountID: w.account, Poll: time.Hour})
	for range 3 {
		w.submitted(&c)
		late.Store(4)
		wantTypes(t, calls, webhook.ResponseCreated)
	}
}

// TestFollowRetriesAfterAnOutage checks that Follow waits for an unavailable store, and returns any
// other error.
func TestFollowRetriesAfterAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *formsvc.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	c, broken := w.campaign(), errors.New("broken")
	w.store.disturb(func(method string, look int) error {
		switch {
		case method != "Events" || look == 4:
			return nil
		case look < 4:
			return fmt.Errorf("connecting: %w", formsvc.ErrUnavailable)
		}
		return broken
	})
	calls, stop := follow(t, w.svc, formsvc.EventQuery{AccountID: w.account, Poll: time.Millisecond})
	w.submitted(&c)
	wantTypes(t, calls, webhook.ResponseCreated)
	for range calls { // until it ends
		t.Error("a look that failed found events")
	}
	if err := stop(); !errors.Is(err, broken) {
		t.Errorf("Follow ended with %v, want %v", err, broken)
	}
}

// TestFollowReturnsTheHandlersError checks that Follow returns the handler's error, and nil at the
// end of ctx.
func TestFollowReturnsTheHandlersError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign()
	w.submitted(&c)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	for _, row := range []struct {
		handle func(context.Context) error
		want   error
	}{
		{func(context.Context) error { return stop }, stop},
		{func(context.Context) error { return context.Canceled }, context.Canceled}, // not the error of ctx
		{func(ctx context.Context) error { cancel(); return fmt.Errorf("a query: %w", ctx.Err()) }, nil},
		{func(context.Context) error { return stop }, nil}, // not called anymore
	} {
		err := w.svc.Events.Follow(ctx, formsvc.EventQuery{AccountID: w.account},
			func(ctx context.Context, _ []formsvc.Event, _ formsvc.Cursor) error { return row.handle(ctx) })
		if err != row.want { //nolint:errorlint // it is returned as it is
			t.Errorf("Follow ended with %v, want %v", err, row.want)
		}
	}
}

func TestFollowRefusesInvalidQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, second := w.campaign(), w.second()
	ctx, cancel := context.WithTimeout(w.ctx, 2*time.Minute) // ends Follow if the query isn't refused
	defer cancel()
	handle := func(context.Context, []formsvc.Event, formsvc.Cursor) error { return nil }
	for want, q := range map[string]formsvc.EventQuery{
		"AccountID is required":      {},
		"a negative Poll":            {AccountID: w.account, Poll: -1},
		`no event type "response.x"`: {AccountID: w.account, Types: []formsvc.EventType{"response.x"}},
	} {
		err := w.svc.Events.Follow(ctx, q, handle)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, formsvc.ErrInvalid) {
			t.Errorf("%+v: error %v, want ErrInvalid with %q", q, err, want)
		}
	}
	for _, q := range []formsvc.EventQuery{{AccountID: w.account}, {CampaignID: c.ID}, {Poll: -1}} {
		wantError(t, w.svc.Events.FollowAll(ctx, q, handle), formsvc.ErrInvalid)
	}
	for _, q := range []formsvc.EventQuery{
		{AccountID: c.ID}, {AccountID: "nope"}, {AccountID: second, CampaignID: c.ID},
	} {
		wantError(t, w.svc.Events.Follow(ctx, q, handle), formsvc.ErrNotFound)
	}
	bound := w.svc.With(w.store.Store)
	if err := bound.Events.Follow(ctx, formsvc.EventQuery{AccountID: w.account}, handle); err == nil ||
		!strings.Contains(err.Error(), "bound to a transaction") {
		t.Errorf("a bound service: error %v, want one that says so", err)
	}
}

func TestRecentEventsAreLimited(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	for i := range 1_005 {
		w.updated(&r, formsvc.ResponsePatch{Status: new([]string{"validated", "pending"}[i%2])})
	}
	for limit, want := range map[int][2]int{
		-5: {1, 1}, 0: {1, 1}, 1: {1, 1}, 7: {7, 7}, 100: {100, 100}, 101: {100, 101}, 1001: {100, 1000}, 1 << 40: {100, 1000},
	} {
		recent, err := w.svc.Events.Recent(w.ctx, formsvc.RecentQuery{AccountID: w.account, Limit: limit})
		about, err2 := w.svc.Events.About(w.ctx, r.Key(), limit)
		if err != nil || err2 != nil || len(recent) != want[0] || len(about) != want[1] {
			t.Errorf("with a limit of %d there are %d recent ones and %d about a response, %v, %v", limit, len(recent), len(about), err, err2)
		}
	}
}

// TestFollowGoesOnAfterErrors fails for one event of many. The others are handed out, and OnError decides about that one alone.
func TestFollowGoesOnAfterErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign()
	var ids []formsvc.ID
	for range 7 {
		ids = append(ids, w.submitted(&c).ID)
	}
	broken := errors.New("broken")
	for _, decision := range []error{nil, errors.New("enough")} {
		var calls []int // events in each
		var handled, refused []formsvc.ID
		ctx, cancel := context.WithCancel(t.Context())
		err := w.svc.Events.FollowAll(ctx, formsvc.EventQuery{
			Limit: 3, Poll: never,
			OnError: func(_ context.Context, e formsvc.Event, err error) error {
				refused = append(refused, e.ResponseID)
				wantError(t, err, broken)
				return decision
			},
		}, func(_ context.Context, events []formsvc.Event, _ formsvc.Cursor) error {
			calls = append(calls, len(events))
			if slices.ContainsFunc(events, func(e formsvc.Event) bool { return e.ResponseID == ids[1] }) {
				return broken
			}
			for _, e := range events {
				handled = append(handled, e.ResponseID)
			}
			if len(handled) == 6 {
				cancel()
			}
			return nil
		})
		cancel()
		want, wantCalls := slices.Concat(ids[:1], ids[2:]), []int{3, 1, 1, 1, 3, 1}
		if decision != nil {
			want, wantCalls = ids[:1], wantCalls[:3]
		}
		if !errors.Is(err, decision) || !slices.Equal(handled, want) || !slices.Equal(refused, ids[1:2]) || !slices.Equal(calls, wantCalls) {
			t.Errorf("with %v: ended with %v, handled %v in calls of %v, refused %v", decision, err, handled, calls, refused)
		}
	}
}

// TestFollowEndsWithItsContext checks that OnError doesn't decide about the end of the context.
func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign()
	w.submitted(&c)
	ctx, cancel := context.WithCancel(t.Context())
	err := w.svc.Events.FollowAll(ctx, formsvc.EventQuery{OnError: func(context.Context, formsvc.Event, error) error {
		t.Error("OnError was called")
		return nil
	}}, func(ctx context.Context, _ []formsvc.Event, _ formsvc.Cursor) error {
		cancel()
		return ctx.Err()
	})
	wantError(t, err, nil)
}

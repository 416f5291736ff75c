package formsvc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func quota(n int) func(*formsvc.Options) { return func(o *formsvc.Options) { o.Quota = n } }

// caller returns a principal with a new key.
func (w *world) caller() *formsvc.Principal {
	w.tb.Helper()
	key, _ := w.key(formsvc.FilesRead)
	return &formsvc.Principal{AccountID: w.account, KeyID: key.ID}
}

// took makes n requests and returns how many were allowed.
func took(tb testing.TB, svc *formsvc.Service, who *formsvc.Principal, n int) (allowed int) {
	tb.Helper()
	for range n {
		_, err := svc.Quotas.Take(context.Background(), who)
		if err == nil {
			allowed++
		} else if !errors.Is(err, formsvc.ErrQuota) {
			tb.Fatal(err)
		}
	}
	return allowed
}

func wantTook(tb testing.TB, svc *formsvc.Service, who *formsvc.Principal, n, want int) {
	tb.Helper()
	if got := took(tb, svc, who, n); got != want {
		tb.Errorf("%d of %d requests are allowed, want %d", got, n, want)
	}
}

func flushed(tb testing.TB, nodes ...*formsvc.Service) {
	tb.Helper()
	for _, svc := range nodes {
		wantError(tb, svc.Quotas.Flush(context.Background()), nil)
	}
}

// wantCounted fails the test unless the store has counted that many requests in each window.
func (w *world) wantCounted(subject formsvc.ID, want ...int) {
	w.tb.Helper()
	list := must(w.svc.Quotas.Use(w.ctx, subject, time.Time{}))
	var got []int
	for _, u := range list {
		got = append(got, u.Used)
	}
	equal(w.tb, fmt.Sprint(got), fmt.Sprint(want), "the store has counted %v")
}

func TestQuotaOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		option, want int
	}{{0, formsvc.DefaultQuota}, {-1, -1}, {7, 7}} {
		w := newWorld(t, func(o *formsvc.Options) { o.Quota = c.option })
		if got, want := must(w.svc.Quotas.Policy(w.ctx, w.account)), (formsvc.QuotaPolicy{Limit: c.want, Window: time.Hour}); got != want {
			t.Errorf("the policy is %+v, want %+v", got, want)
		}
	}
}

// With one node the state that Take returns is exact, and the store is asked once.
func TestQuotaState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(40))
	who := w.caller()
	for left := 39; left >= 0; left-- {
		state, err := w.svc.Quotas.Take(w.ctx, who)
		if err != nil || state.Limit != 40 || state.Left != left || state.Window != time.Hour ||
			state.Reset != 30*time.Minute-123*time.Millisecond {
			t.Fatalf("got %+v, %v, want %d left", state, err, left)
		}
	}
	state, err := w.svc.Quotas.Take(w.ctx, who)
	if !errors.Is(err, formsvc.ErrQuota) || state.Left != 0 || state.Limit != 40 || state.Reset != 30*time.Minute-123*time.Millisecond {
		t.Errorf("got %+v, %v, want ErrQuota with nothing left", state, err)
	}
	equal(t, w.store.count("QuotaUse")+w.store.count("AddQuota"), 1, "the store was asked %d times")
	flushed(t, w.svc)
	w.wantCounted(who.KeyID, 40)
	wantTook(t, w.svc, who, 10, 0)

	none := newWorld(t, quota(-1))
	wantTook(t, none.svc, none.caller(), 2000, 2000)
	equal(t, none.store.count("QuotaUse"), 0, "without a quota the store is asked %d times")
}

func TestQuotaSubjects(t *testing.T) {
	t.Parallel()
	keys := newWorld(t, quota(10))
	first, second := keys.caller(), keys.caller()
	wantTook(t, keys.svc, first, 20, 10)
	wantTook(t, keys.svc, second, 20, 10)
	own := &formsvc.Principal{AccountID: keys.account} // has no key
	wantTook(t, keys.svc, own, 20, 10)

	// Users whom a host application has signed in.
	ada := &formsvc.Principal{AccountID: keys.account, KeyName: "Ada"}
	wantTook(t, keys.svc, ada, 20, 10)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.account, KeyName: "Bob"}, 20, 10)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.account, KeyName: "Ada", UserID: "2"}, 20, 10)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.account, KeyName: "Ada Lovelace", UserID: "2"}, 20, 0)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.second(), KeyName: "Ada"}, 20, 10)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.account, KeyName: "Ada", NoQuota: true}, 20, 20)
	if id, ok := formsvc.ParseID(string(ada.Subject())); !ok || id == keys.account {
		t.Errorf("subject %s", ada.Subject())
	}

	accounts := newWorld(t, quota(10), func(o *formsvc.Options) { o.QuotaPerAccount = true })
	first, second = accounts.caller(), accounts.caller()
	wantTook(t, accounts.svc, first, 6, 6)
	wantTook(t, accounts.svc, second, 6, 4)
	wantTook(t, accounts.svc, &formsvc.Principal{AccountID: accounts.account, UserID: "1"}, 6, 0)
	flushed(t, accounts.svc)
	accounts.wantCounted(accounts.account, 10)
}

// Concurrent requests of one node, also its first ones, are allowed exactly the quota, whether or not
// counts are written meanwhile.
func TestOneNodeAllowsExactlyTheQuota(t *testing.T) {
	t.Parallel()
	for range 10 {
		w := newWorld(t, quota(100))
		who := w.caller()
		var (
			all     sync.WaitGroup
			allowed atomic.Int64
		)
		for i := range 10 {
			all.Go(func() {
				allowed.Add(int64(took(t, w.svc, who, 15)))
				if i%3 == 0 {
					flushed(t, w.svc)
				}
				allowed.Add(int64(took(t, w.svc, who, 15)))
			})
		}
		all.Wait()
		if allowed.Load() != 100 {
			t.Fatalf("%d requests are allowed, want 100", allowed.Load())
		}
		flushed(t, w.svc)
		w.wantCounted(who.KeyID, 100)
	}
	w := newWorld(t, quota(10))
	who := w.caller()
	w.store.disturb(func(method string, call int) error {
		if call == 1 {
			wantTook(t, w.svc, who, 2, 2) // while the first request reads the window, and while counts are written
		}
		return nil
	})
	wantTook(t, w.svc, who, 1, 1)
	flushed(t, w.svc)
	wantTook(t, w.svc, who, 10, 5)
	flushed(t, w.svc)
	w.wantCounted(who.KeyID, 10)
}

// Several nodes exceed the quota by no more than what is counted between two writes. A node that
// starts again knows what was written.
func TestQuotaOverNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(100))
	who, other := w.caller(), w.neighbour(quota(100))
	wantTook(t, w.svc, who, 30, 30)
	flushed(t, w.svc)
	wantTook(t, other, who, 40, 40)
	wantTook(t, w.svc, who, 20, 20)
	flushed(t, other, w.svc, other)
	w.wantCounted(who.KeyID, 90)
	wantTook(t, other, who, 1, 1)
	flushed(t, other, w.svc)
	wantTook(t, w.svc, who, 5, 5) // which hasn't written since, so it doesn't know of one request
	flushed(t, w.svc)
	wantTook(t, w.svc, who, 100, 4)
	flushed(t, w.svc)
	wantTook(t, w.neighbour(quota(100)), who, 10, 0)
	w.wantCounted(who.KeyID, 100)
}

func TestQuotaWindows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(5))
	who, idle := w.caller(), w.caller()
	wantTook(t, w.svc, who, 10, 5)
	wantTook(t, w.svc, idle, 2, 2)
	w.clock.set(start().Truncate(time.Hour).Add(time.Hour - time.Nanosecond))
	wantTook(t, w.svc, who, 10, 0)
	w.clock.add(time.Nanosecond)
	wantTook(t, w.svc, who, 10, 5)
	flushed(t, w.svc) // of both windows
	w.wantCounted(who.KeyID, 5, 5)
	w.wantCounted(idle.KeyID, 2)
	w.clock.add(-time.Minute) // the clock was set back
	wantTook(t, w.svc, who, 10, 0)
	w.clock.add(time.Hour)
	wantTook(t, w.svc, who, 10, 0)
	flushed(t, w.svc)
	w.wantCounted(who.KeyID, 5, 5)
}

func TestGiveUncountsARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(5))
	who := w.caller()
	state := must(w.svc.Quotas.Take(w.ctx, who))
	equal(t, w.svc.Quotas.Give(state).Left, 5, "%d left after the only request was given back")
	wantTook(t, w.svc, who, 10, 5)
	flushed(t, w.svc)
	w.svc.Quotas.Give(state)
	flushed(t, w.svc)
	w.wantCounted(who.KeyID, 4)
	wantTook(t, w.svc, who, 10, 1)
	w.clock.add(time.Hour)
	wantTook(t, w.svc, who, 10, 5)
	w.svc.Quotas.Give(state) // from the previous window
	wantTook(t, w.svc, who, 10, 0)
	flushed(t, w.svc)
	w.wantCounted(who.KeyID, 4, 5)
}

// If the store fails, nothing is counted twice or lost.
func TestQuotaStoreFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(100))
	who := w.caller()
	failing := func(err error) { w.store.disturb(func(string, int) error { return err }) }
	failing(formsvc.ErrUnavailable)
	wantError(t, failure(w.svc.Quotas.Take(w.ctx, who)), formsvc.ErrUnavailable)
	failing(nil)
	wantTook(t, w.svc, who, 60, 60)
	failing(formsvc.ErrUnavailable)
	wantError(t, w.svc.Quotas.Flush(w.ctx), formsvc.ErrUnavailable)
	wantTook(t, w.svc, who, 30, 30) // the node knows what is left
	w.clock.add(time.Hour)
	wantError(t, w.svc.Quotas.Flush(w.ctx), formsvc.ErrUnavailable)
	failing(nil)
	flushed(t, w.svc)
	w.wantCounted(who.KeyID, 90)

	// The store has written the counts, but the reply is lost.
	wantTook(t, w.svc, who, 70, 70)
	w.store.after = func(string) error { return formsvc.ErrUnknownOutcome }
	wantError(t, w.svc.Quotas.Flush(w.ctx), formsvc.ErrUnknownOutcome)
	w.store.after = nil
	wantTook(t, w.svc, who, 100, 30)
	flushed(t, w.svc)
	w.wantCounted(who.KeyID, 90, 100)
}

// Idle keys take no memory, and are known again when they come back.
func TestQuotaDropsIdleKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(10))
	who := w.caller()
	wantTook(t, w.svc, who, 4, 4)
	flushed(t, w.svc, w.svc)
	w.store.disturb(nil)
	wantTook(t, w.svc, who, 1, 1)
	equal(t, w.store.count("QuotaUse"), 0, "a busy key asked the store %d times")
	flushed(t, w.svc)
	w.clock.add(2 * time.Minute)
	flushed(t, w.svc)
	wantTook(t, w.svc, who, 10, 5)
	equal(t, w.store.count("QuotaUse"), 1, "the store was asked %d times for a key that was idle")
}

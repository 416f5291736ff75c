package formsvc_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A storeWithClock counts by its own clock, like a store that several machines share.
type storeWithClock struct {
	formsvc.Store
	clock *clock
}

func (s *storeWithClock) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (formsvc.QuotaGrant, error) {
	q.Now = s.clock.Now()
	return s.Store.TakeQuota(ctx, q)
}

// If the store has a clock, the clocks of nodes don't matter, even if they jump.
func TestQuotaUsesTheStoresClock(t *testing.T) {
	t.Parallel()
	const limit = 100
	for _, off := range []time.Duration{0, time.Hour, -time.Hour, 40 * time.Minute, -40 * time.Minute, 1000 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			kept := &storeWithClock{w.store, &clock{now: start()}}
			clocks := []*clock{{now: start()}, {now: start().Add(off)}}
			var nodes []*formsvc.Service
			for _, c := range clocks {
				svc, err := formsvc.New(kept, &formsvc.Options{Now: c.Now, Quota: new(limit)})
				if err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, svc)
			}
			pass := func(d time.Duration) {
				for _, c := range append(clocks, kept.clock) {
					c.add(d)
				}
			}
			who := w.caller()
			allowed := 0
			for _, svc := range nodes {
				allowed += took(t, svc, who, 30)
			}
			for _, step := range []time.Duration{time.Hour, -3 * time.Hour, 2 * time.Hour} {
				clocks[1].add(step) // without time passing
				allowed += took(t, nodes[1], who, 5)
			}
			pass(29*time.Minute + 59*time.Second + 800*time.Millisecond) // the window has 77 ms left
			for _, svc := range nodes {
				allowed += took(t, svc, who, limit)
			}
			if allowed != limit {
				t.Errorf("%d requests are allowed until the window ends, want %d", allowed, limit)
			}
			pass(77 * time.Millisecond)
			allowed = 0
			for _, svc := range nodes {
				allowed += took(t, svc, who, limit)
			}
			if allowed != limit {
				t.Errorf("%d requests are allowed in the next window, want %d", allowed, limit)
			}
			w.wantCounted(who.KeyID, limit, limit)
		})
	}
}

// A slowStore replies late.
type slowStore struct {
	formsvc.Store
	late func()
}

func (s *slowStore) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (formsvc.QuotaGrant, error) {
	grant, err := s.Store.TakeQuota(ctx, q)
	s.late()
	return grant, err
}

// However late the store replies, its grant isn't used in the next window. A clock that is set back
// doesn't make a window longer.
func TestLateGrantsExpireWithTheirWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stores, own := &clock{now: start()}, &clock{now: start()}
	pass := func(d time.Duration) {
		stores.add(d)
		own.add(d)
	}
	late := 20 * time.Second
	svc, err := formsvc.New(&slowStore{&storeWithClock{w.store, stores}, func() { pass(late) }},
		&formsvc.Options{Now: own.Now, Quota: new(1000)})
	if err != nil {
		t.Fatal(err)
	}
	who := w.caller()
	pass(29*time.Minute + 50*time.Second)
	wantTook(t, svc, who, 1, 1) // asked 10 s before the end, reply 10 s after it
	late = 0
	wantTook(t, svc, who, 2000, 1000)
	if used := w.counted(who.KeyID); len(used) != 2 || used[1] != 1000 {
		t.Errorf("counted %v, want 1000 in the second window", used)
	}
	own.add(-3 * time.Hour)
	pass(time.Hour)
	wantTook(t, svc, who, 2000, 1000)
}

// A grant isn't used in the next window.
func TestQuotaEndsWithItsWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(1000))
	who := w.caller()
	wantTook(t, w.svc, who, 1, 1)
	first := w.counted(who.KeyID)[0]
	w.clock.set(start().Truncate(time.Hour).Add(time.Hour - time.Nanosecond))
	wantTook(t, w.svc, who, first-1, first-1)
	w.wantCounted(who.KeyID, first)
	w.svc.Quotas.Give(who, mustTake(t, w.svc, who))
	w.clock.set(start().Truncate(time.Hour).Add(time.Hour))
	wantTook(t, w.svc, who, 2000, 1000)
	if used := w.counted(who.KeyID); len(used) != 2 || used[1] != 1000 {
		t.Errorf("counted %v, want 1000 in the second window", used)
	}
}

func mustTake(tb testing.TB, svc *formsvc.Service, who *formsvc.Principal) formsvc.QuotaState {
	tb.Helper()
	state, err := svc.Quotas.Take(context.Background(), who)
	if err != nil {
		tb.Fatal(err)
	}
	return state
}

// running runs the regular work of a service until stop is called.
func running(svc *formsvc.Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = svc.Run(ctx) // always nil
	}()
	return func() {
		cancel()
		<-done
	}
}

func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); !done(); <-tick.C {
		if time.Since(begun) > 2*time.Minute {
			tb.Fatalf("%s: never", what)
		}
	}
}

// Run returns the unused requests of an idle key, and of all keys when it ends.
func TestRunReturnsQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(1000))
	resting, busy := w.caller(), w.caller()
	stop := running(w.svc)
	wantTook(t, w.svc, resting, 3, 3)
	w.clock.add(formsvc.QuotaIdle)
	wantTook(t, w.svc, busy, 3, 3)
	eventually(t, "what rests is returned", func() bool { return fmt.Sprint(w.counted(resting.KeyID)) == "[3]" })
	if used := w.counted(busy.KeyID)[0]; used <= 3 {
		t.Errorf("%d requests of a busy key are counted: it has no block", used)
	}
	stop()
	w.wantCounted(resting.KeyID, 3)
	w.wantCounted(busy.KeyID, 3)
}

// A node that was refused gets what another node held for an idle key.
func TestQuotaMovesBetweenNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(200))
	who, other := w.caller(), w.node(quota(200))
	defer running(w.svc)()
	wantTook(t, w.svc, who, 10, 10)
	allowed := took(t, other, who, 300)
	if _, held := w.svc.Quotas.Held(); held == 0 || allowed != 190-held {
		t.Fatalf("%d requests are allowed there while %d are held here", allowed, held)
	}
	w.clock.add(formsvc.QuotaIdle)
	eventually(t, "all are allowed", func() bool {
		allowed += took(t, other, who, 300)
		w.clock.add(time.Second)
		return allowed >= 190
	})
	if allowed != 190 {
		t.Errorf("10 and %d requests are allowed, want 200", allowed)
	}
}

// The less often a key makes requests, the less a node holds for it.
func TestSlowKeysHoldLessQuota(t *testing.T) {
	t.Parallel()
	for every, most := range map[time.Duration]int{3 * time.Second: 0, 1900 * time.Millisecond: 5} {
		w := newWorld(t, quota(10_000))
		who := w.caller()
		for i := range 60 {
			wantTook(t, w.svc, who, 1, 1)
			if _, held := w.svc.Quotas.Held(); i > 30 && held > most {
				t.Errorf("%d requests are held for a key that asks every %v", held, every)
			}
			w.clock.add(every)
			if every >= formsvc.QuotaIdle {
				if err := w.svc.Quotas.Release(w.ctx); err != nil { // as Run does
					t.Fatal(err)
				}
			}
		}
	}
}

func TestRunPrunesQuotas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(1000))
	who, late := w.caller(), w.caller()
	wantTook(t, w.svc, who, 1, 1)
	w.clock.add(47 * time.Hour)
	wantTook(t, w.svc, late, 1, 1)
	w.clock.add(time.Hour + 30*time.Minute)
	w.pruneQuotas()
	if used := w.counted(who.KeyID); len(used) != 0 {
		t.Errorf("a window older than 48 hours is still there: %v", used)
	}
	if len(w.counted(late.KeyID)) != 1 {
		t.Errorf("a window of the last 48 hours was pruned")
	}

	long := newWorld(t, quota(1000), func(o *formsvc.Options) { o.QuotaWindow = 1000 * time.Hour })
	who = long.caller()
	wantTook(t, long.svc, who, 1, 1)
	long.clock.add(100 * time.Hour)
	long.pruneQuotas()
	if len(long.counted(who.KeyID)) != 1 {
		t.Errorf("a window that may last was pruned")
	}
}

// pruneQuotas runs the regular work until there is nothing left to prune.
func (w *world) pruneQuotas() {
	w.tb.Helper()
	w.store.disturb(nil)
	stop := running(w.svc)
	defer stop()
	eventually(w.tb, "quotas are pruned", func() bool { return w.store.count("pruned everything") > 0 })
}

func (s *watchedStore) Prune(ctx context.Context, what formsvc.Prunable, before time.Time, limit int) (int, error) {
	n, err := s.Store.Prune(ctx, what, before, limit)
	if what == formsvc.PruneQuota && n == 0 && err == nil {
		err = s.enter("pruned everything")
	}
	return n, err
}

// The number of balances is limited.
func TestQuotaDropsIdleBalances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(10)) // nothing is granted in advance
	who := &formsvc.Principal{}
	for i := range 25_000 {
		who.KeyID = formsvc.ID(fmt.Sprintf("%s%012x", formsvc.FloorID(start())[:24], i))
		wantTook(t, w.svc, who, 1, 1)
	}
	if n, _ := w.svc.Quotas.Held(); n > 10_000 {
		t.Errorf("%d balances of keys that hold nothing", n)
	}
	wantTook(t, w.svc, who, 20, 9) // whether the balance was dropped or not
	w.clock.add(time.Hour)
	if err := w.svc.Quotas.Release(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n, _ := w.svc.Quotas.Held(); n != 0 {
		t.Errorf("%d balances of windows that have ended", n)
	}
}

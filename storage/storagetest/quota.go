package storagetest

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func quotaTests() []test {
	return []test{
		{"grants in advance are limited", testQuotaGrants},
		{"limit changes", testQuotaLimit},
		{"subjects are counted apart", testQuotaSubjects},
		{"windows are aligned", testQuotaWindows},
		{"next window starts afresh", testQuotaNextWindow},
		{"returned requests are free again", testQuotaReturn},
		{"use is counted by window", testQuotaUse},
		{"old windows are pruned", testQuotaPrune},
		{"concurrent grants don't overlap", testQuotaTogether},
	}
}

// quotaWindow is so long that no test reaches its end, by any clock. The current one began in 2019.
const quotaWindow = 50 * 365 * 24 * time.Hour

func take(subject formsvc.ID, limit, need, spare int) formsvc.QuotaQuery {
	return formsvc.QuotaQuery{Subject: subject, Limit: limit, Window: quotaWindow, Need: need, Spare: spare, Now: nextDay()}
}

// taken asks for requests and fails the test unless the store grants that many and has that many left.
func (w *world) taken(q formsvc.QuotaQuery, granted, left int) formsvc.QuotaGrant {
	w.Helper()
	g, err := w.store.TakeQuota(w.ctx, q)
	w.must("TakeQuota", err)
	if g.Granted != granted || g.Left != left {
		w.Errorf("%d and %d to come under a limit of %d: granted %d, left %d; want %d and %d",
			q.Need, q.Spare, q.Limit, g.Granted, g.Left, granted, left)
	}
	return g
}

// wantUsed fails the test unless the store has counted that many requests over all windows.
func (w *world) wantUsed(subject formsvc.ID, want int) {
	w.Helper()
	list, err := w.store.QuotaUse(w.ctx, subject, time.Time{})
	w.must("QuotaUse", err)
	got := 0
	for _, u := range list {
		got += u.Used
	}
	if got != want {
		w.Errorf("%d requests are counted, want %d", got, want)
	}
}

// testQuotaGrants checks that at most a sixteenth of the rest is granted in advance.
func testQuotaGrants(w *world) {
	for _, c := range []struct{ used, need, spare, granted, left int }{
		{0, 1, 0, 1, 999},
		{0, 1, 8, 9, 991},
		{0, 1, 1000, 63, 937},
		{0, 40, 1000, 100, 900},
		{0, 1000, 1000, 1000, 0},
		{0, 1001, 0, 1000, 0},
		{0, 5000, 5000, 1000, 0},
		{0, 0, 10, 10, 990},
		{0, 0, 0, 0, 1000},
		{983, 1, 8, 2, 15},
		{984, 1, 8, 1, 15},
		{984, 0, 8, 1, 15},
		{985, 0, 8, 0, 15},
		{990, 8, 8, 8, 2},
		{999, 1, 8, 1, 0},
		{999, 2, 8, 1, 0},
		{1000, 1, 8, 0, 0},
		{1000, 0, 8, 0, 0},
	} {
		subject := w.nextID()
		if c.used > 0 {
			w.taken(take(subject, 1000, c.used, 0), c.used, 1000-c.used)
		}
		w.taken(take(subject, 1000, c.need, c.spare), c.granted, c.left)
		w.wantUsed(subject, 1000-c.left)
	}
}

func testQuotaLimit(w *world) {
	subject := w.nextID()
	w.taken(take(subject, 100, 60, 0), 60, 40)
	w.taken(take(subject, 50, 1, 5), 0, 0)
	w.taken(take(subject, 0, 1, 5), 0, 0)
	w.wantUsed(subject, 60)
	w.taken(take(subject, 61, 5, 5), 1, 0)
	w.taken(take(subject, 1_000_000_000, 1, 1_000_000), 1_000_001, 998_999_938)
	w.wantUsed(subject, 1_000_062)
}

func testQuotaSubjects(w *world) {
	first, second := w.nextID(), w.nextID()
	w.taken(take(first, 10, 20, 0), 10, 0)
	w.taken(take(second, 10, 4, 0), 4, 6)
	w.taken(take(first, 10, 1, 0), 0, 0)
	w.must("ReturnQuota", w.store.ReturnQuota(w.ctx, []formsvc.QuotaReturn{{
		Subject: first, Start: w.taken(take(first, 10, 1, 0), 0, 0).Start, N: 3,
	}}))
	w.wantUsed(first, 7)
	w.wantUsed(second, 4)
}

// windows returns lengths of windows that practically never begin at the same time, the longest one first, which began
// first.
func windows() []time.Duration {
	return []time.Duration{quotaWindow, 10_007 * time.Hour, 101 * time.Hour}
}

func testQuotaWindows(w *world) {
	for _, length := range append(windows(), time.Hour, 7*time.Second, time.Second) {
		q := take(w.nextID(), 10, 1, 0)
		q.Window = length
		g := w.taken(q, 1, 9)
		if us := g.Start.UnixMicro(); us%length.Microseconds() != 0 || g.Start.Location() != time.UTC {
			w.Errorf("a window of %v begins at %v, which is no multiple", length, g.Start)
		}
		if g.Ends > length || length > time.Hour && g.Ends <= 0 {
			w.Errorf("a window of %v ends in %v", length, g.Ends)
		}
		// A store uses its own clock or the given time.
		own, given := g.Start.Add(length-g.Ends), q.Now
		if now := time.Now(); !own.Equal(given) && (own.Before(now.Add(-time.Hour)) || own.After(now.Add(time.Hour))) {
			w.Errorf("the window of %v is about %v, which is neither now nor %v", length, own, given)
		}
	}
}

// testQuotaNextWindow takes all requests of a window until the next one begins.
func testQuotaNextWindow(w *world) {
	subject := w.nextID()
	var starts []time.Time
	for begun := time.Now(); len(starts) < 3; {
		if time.Since(begun) > time.Minute {
			w.Fatalf("%d windows of 100 ms in a minute", len(starts))
		}
		q := take(subject, 10, 20, 0)
		q.Window, q.Now = 100*time.Millisecond, time.Now()
		g, err := w.store.TakeQuota(w.ctx, q)
		w.must("TakeQuota", err)
		again := len(starts) > 0 && starts[len(starts)-1].Equal(g.Start)
		if want := 10; again && g.Granted != 0 || !again && g.Granted != want {
			w.Errorf("granted %d; in a window that had requests already: %v", g.Granted, again)
		}
		if !again {
			starts = append(starts, g.Start)
		}
		time.Sleep(10 * time.Millisecond)
	}
	list, err := w.store.QuotaUse(w.ctx, subject, starts[1])
	w.must("QuotaUse", err)
	w.same("use", list, []formsvc.QuotaUse{{Start: starts[1], Used: 10}, {Start: starts[2], Used: 10}})
}

func testQuotaReturn(w *world) {
	subject := w.nextID()
	at := w.taken(take(subject, 10, 10, 0), 10, 0).Start
	other := take(subject, 10, 5, 0)
	other.Window = windows()[1]
	w.taken(other, 5, 5)
	give := func(list ...formsvc.QuotaReturn) {
		w.Helper()
		w.must("ReturnQuota", w.store.ReturnQuota(w.ctx, list))
	}
	give()
	give(formsvc.QuotaReturn{Subject: subject, Start: at, N: 3})
	w.wantUsed(subject, 12)
	w.taken(take(subject, 10, 1, 0), 1, 2)
	give(formsvc.QuotaReturn{Subject: w.nextID(), Start: at, N: 3},
		formsvc.QuotaReturn{Subject: "nope", Start: at, N: 3},
		formsvc.QuotaReturn{Subject: subject, Start: at.Add(time.Hour), N: 3},
		formsvc.QuotaReturn{Subject: subject, Start: at, N: 1},
		formsvc.QuotaReturn{Subject: subject, Start: at, N: 2})
	w.wantUsed(subject, 10)
	give(formsvc.QuotaReturn{Subject: subject, Start: at, N: 1000})
	w.wantUsed(subject, 5)
	w.taken(take(subject, 10, 20, 0), 10, 0)
}

// use takes requests in windows of several lengths, and returns the resulting counts.
func (w *world) use(subject formsvc.ID) []formsvc.QuotaUse {
	w.Helper()
	var list []formsvc.QuotaUse
	for i, length := range windows() {
		q := take(subject, 100, 10+i, 0)
		q.Window = length
		list = append(list, formsvc.QuotaUse{Start: w.taken(q, 10+i, 90-i).Start, Used: 10 + i})
	}
	slices.SortFunc(list, func(a, b formsvc.QuotaUse) int { return a.Start.Compare(b.Start) })
	return list
}

func (w *world) wantUse(subject formsvc.ID, since time.Time, want []formsvc.QuotaUse) {
	w.Helper()
	list, err := w.store.QuotaUse(w.ctx, subject, since)
	w.must("QuotaUse", err)
	w.same("use", list, want)
}

func testQuotaUse(w *world) {
	mine, other := w.nextID(), w.nextID()
	all := w.use(mine)
	w.use(other)
	w.wantUse(mine, time.Time{}, all)
	w.wantUse(mine, all[1].Start, all[1:])
	w.wantUse(mine, all[1].Start.Add(time.Microsecond), all[2:])
	w.wantUse(w.nextID(), time.Time{}, nil)
	w.wantUse("nope", time.Time{}, nil)
	w.must("ReturnQuota", w.store.ReturnQuota(w.ctx, []formsvc.QuotaReturn{{Subject: mine, Start: all[1].Start, N: all[1].Used}}))
	w.wantUse(mine, time.Time{}, []formsvc.QuotaUse{all[0], all[2]})
}

func testQuotaPrune(w *world) {
	first, second := w.nextID(), w.nextID()
	all := w.use(first)
	w.use(second)
	prune := func(before time.Time, limit, want int) {
		w.Helper()
		n, err := w.store.Prune(w.ctx, formsvc.PruneQuota, before, limit)
		if w.must("PruneQuota", err); n != want {
			w.Errorf("PruneQuota: %d windows, want %d", n, want)
		}
	}
	prune(all[0].Start, 10, 0)
	prune(all[1].Start, 0, 0)
	prune(all[1].Start, 10, 2)
	w.wantUse(first, time.Time{}, all[1:])
	w.wantUse(second, time.Time{}, all[1:])
	prune(all[2].Start.Add(time.Microsecond), 3, 3)
	prune(all[2].Start.Add(time.Microsecond), 3, 1)
	prune(all[2].Start.Add(time.Microsecond), 3, 0)
	w.wantUse(first, time.Time{}, nil)
}

func testQuotaTogether(w *world) { w.takeTogether([]Store{w.store}) }

func testHandlesQuota(w *world) { w.takeTogether([]Store{w.store, w.reopen(w.T, w.store)}) }

// takeTogether takes and returns requests concurrently until none are left. It checks that the grants don't overlap:
// each says how many are left after it.
func (w *world) takeTogether(stores []Store) {
	w.Helper()
	const limit = 2_000
	subject, neighbour := w.nextID(), w.nextID()
	w.taken(take(neighbour, limit, 7, 0), 7, limit-7)
	var held, turn atomic.Int64
	grants := make([][]formsvc.QuotaGrant, writers)
	w.together(writers, func(i int) {
		store := stores[turn.Add(1)%int64(len(stores))]
		for n := 0; ; n++ {
			g, err := store.TakeQuota(w.ctx, take(subject, limit, 1+n%3, 10*(i%4)))
			if err != nil {
				w.Errorf("TakeQuota: %v", err)
				return
			}
			if g.Granted == 0 {
				return
			}
			if now := held.Add(int64(g.Granted)); now > limit {
				w.Errorf("%d requests are granted under a limit of %d", now, limit)
				return
			}
			if spare := g.Granted - (1 + n%3); spare > 0 && spare > (g.Left+spare)/formsvc.QuotaShare {
				w.Errorf("granted %d to come, of %d left", spare, g.Left+spare)
			}
			grants[i] = append(grants[i], g)
		}
	})
	if held.Load() != limit {
		w.Errorf("%d requests are granted until nothing was left, want %d", held.Load(), limit)
	}
	every := slices.Concat(grants...)
	slices.SortFunc(every, func(a, b formsvc.QuotaGrant) int { return cmp.Compare(b.Left, a.Left) })
	left := limit
	for _, g := range every {
		if left -= g.Granted; g.Left != left {
			w.Fatalf("a grant of %d leaves %d, want %d", g.Granted, g.Left, left)
		}
	}
	w.wantUsed(subject, limit)
	w.wantUsed(neighbour, 7)
	w.returnTogether(stores, subject, every)
}

// returnTogether returns all grants concurrently, in lists with different orders.
func (w *world) returnTogether(stores []Store, subject formsvc.ID, grants []formsvc.QuotaGrant) {
	w.Helper()
	second := w.nextID()
	w.taken(take(second, 1000, writers, 0), writers, 1000-writers)
	at := grants[0].Start
	w.together(writers, func(i int) {
		list := []formsvc.QuotaReturn{{Subject: subject, Start: at, N: 1}, {Subject: second, Start: at, N: 1}}
		if i%2 == 0 {
			slices.Reverse(list)
		}
		w.check("ReturnQuota", stores[i%len(stores)].ReturnQuota(w.ctx, list))
	})
	w.wantUsed(subject, 2_000-writers)
	w.wantUsed(second, 0)
}

package storagetest

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

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

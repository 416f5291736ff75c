package storagetest

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func statsTests() []test {
	return []test{
		{"pending and claimed deliveries are counted", testStatsPending},
		{"oldest pending delivery", testStatsOldest},
		{"pending deliveries of a webhook", testCountPending},
	}
}

func (w *world) wantStats(what string, now time.Time, pending int64, oldest time.Time) {
	w.Helper()
	got, err := w.store.QueueStats(w.ctx, formsvc.QueueQuery{Now: now, Limit: formsvc.MaxCounted})
	w.must("QueueStats", err)
	w.same(what+": stats", got, formsvc.QueueStats{Pending: pending, OldestDue: oldest})
}

func testStatsPending(w *world) {
	none := time.Time{}
	w.wantStats("an empty store", nextDay(), 0, none)
	sc, other := w.addScene(), w.addScene()
	w.addDue(&sc.campaign, start())
	w.addDue(&sc.campaign, nextDay().Add(time.Hour))
	w.addDue(&other.campaign, nextDay().Add(time.Hour))
	w.wantStats("all accounts, due or not", start().Add(-time.Second), 3, none)
	claim := w.takeOne(nextDay(), &sc.hook)
	w.wantStats("one is under way", nextDay(), 3, none)
	w.finish(outcome(&claim, delivery.Delivered, nextDay()))
	w.wantStats("one is delivered", nextDay(), 2, none)
	later := nextDay().Add(time.Hour)
	w.attend(&other.hook, later, delivery.Failed)
	w.wantStats("one failed", nextDay(), 1, none)
	w.attend(&sc.hook, later, delivery.Postponed)
	w.wantStats("one waits for a retry", nextDay(), 1, none)
	w.change(&sc.hook, disable)
	w.wantStats("disabled", nextDay(), 1, none)
}

func testStatsOldest(w *world) {
	sc, other := w.addScene(), w.addScene()
	hour := func(n int) time.Time { return nextDay().Add(time.Duration(n) * time.Hour) }
	w.addDue(&sc.campaign, hour(2))
	w.addDue(&other.campaign, hour(3))
	w.wantStats("too early", hour(2).Add(-time.Microsecond), 2, time.Time{})
	w.wantStats("one is due", hour(2), 2, hour(2))
	w.wantStats("two are due", hour(9), 2, hour(2))
	w.change(&sc.hook, disable)
	w.wantStats("the longest waiting rests", hour(9), 2, hour(3))
	w.change(&sc.hook, enable)
	claim := w.takeOne(hour(9), &sc.hook)
	w.wantStats("the longest waiting is under way", hour(9), 2, hour(3))
	w.wantStats("its lease ended", hour(10), 2, hour(3))
	o := outcome(&claim, delivery.Postponed, hour(9))
	o.Due = hour(1)
	w.finish(o)
	w.wantStats("a retry", hour(9), 2, hour(1))
	claim = w.takeOne(hour(9), &sc.hook)
	w.finish(outcome(&claim, delivery.Delivered, hour(9)))
	_, err := w.store.Redeliver(w.ctx, formsvc.DeliveryKey{AccountID: sc.account.ID, ID: formsvc.ID(claim.ID)}, hour(0), nil)
	w.must("Redeliver", err)
	w.wantStats("a replay", hour(9), 2, hour(0))
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	got, err := w.store.QueueStats(w.ctx, formsvc.QueueQuery{Now: hour(9), Limit: formsvc.MaxCounted})
	if err != nil || !got.OldestDue.Equal(hour(3)) {
		w.Errorf("after the webhook was deleted: stats %+v, %v; want the other account's, due %v", got, err, hour(3))
	}
}

func testCountPending(w *world) {
	sc, other := w.addScene(), w.addScene()
	want := func(what string, hook *formsvc.Webhook, limit int, n int64) {
		w.Helper()
		got, err := countPending(w.ctx, w.store, webhookKey(hook), limit)
		w.must("CountPending", err)
		w.same(what+": waiting", got, n)
	}
	want("none", &sc.hook, 10, 0)
	w.addDue(&sc.campaign, nextDay())
	for range 2 {
		w.addDue(&sc.campaign, nextDay().Add(time.Hour))
	}
	w.addDue(&other.campaign, nextDay().Add(time.Hour))
	want("three", &sc.hook, 10, 3)
	want("as many as are counted", &sc.hook, 3, 3)
	want("no more than are counted", &sc.hook, 2, 2)
	want("nothing is counted", &sc.hook, 0, 0)
	want("less than nothing", &sc.hook, -1, 0)
	want("another webhook", &other.hook, 10, 1)
	claim := w.takeOne(nextDay(), &sc.hook)
	want("one is under way", &sc.hook, 10, 3)
	w.finish(outcome(&claim, delivery.Delivered, nextDay()))
	want("one is delivered", &sc.hook, 10, 2)
	w.change(&sc.hook, disable)
	want("disabled", &sc.hook, 10, 2)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	want("deleted", &sc.hook, 10, 0)
}

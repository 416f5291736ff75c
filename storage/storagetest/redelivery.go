package storagetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func redeliveryTests() []test {
	return []test{
		{"finished delivery is sent again", testRedeliverDone},
		{"pending delivery keeps its kind", testRedeliverPending},
		{"delivery in progress is refused", testRedeliverClaimed},
		{"disabled webhook", testRedeliverDisabled},
		{"deleted webhooks and events", testRedeliverGone},
		{"failed redelivery leaves no notice", testReplayFails},
		{"times are kept to the microsecond", testRedeliverTimes},
		{"concurrent redeliveries", testRedeliverRace},
		{"failed ones within time bounds", testRedeliverBounds},
		{"failed ones in order and in steps", testRedeliverPace},
		{"only failed ones", testRedeliverFailedOnly},
		{"failed ones concurrently", testRedeliverFailedRace},
	}
}

// redeliver makes the delivery of an event due again, and returns it. The store must return what it stores.
func (w *world) redeliver(e *formsvc.Event, hook *formsvc.Webhook, at time.Time) formsvc.Delivery {
	w.Helper()
	d := w.delivery(e, hook)
	got, err := w.store.Redeliver(w.ctx, deliveryKey(&d), at, nil)
	w.must("Redeliver", err)
	w.same("delivery as redelivered", got, w.delivery(e, hook))
	d.State, d.DueAt = formsvc.DeliveryPending, at
	w.same("redelivered delivery", got, d)
	return got
}

func testRedeliverDone(w *world) {
	for _, result := range []delivery.Result{delivery.Delivered, delivery.Failed} {
		for _, again := range []delivery.Result{delivery.Delivered, delivery.Failed} {
			sc := w.addScene()
			_, e := w.addResponse(&sc.campaign)
			first := w.attend(&sc.hook, nextDay(), result)[0]
			at := nextDay().Add(time.Hour)
			w.redeliver(&e, &sc.hook, at)
			if claims := w.claim(at.Add(-time.Microsecond)); len(claims) != 0 {
				w.Errorf("claimed a replay before it is due")
			}
			replay := w.claimOne(at)
			if replay.ID != first.ID || replay.EventID != first.EventID || replay.Kind != delivery.Replay ||
				replay.Attempts != 1 || replay.Size != len(e.Payload) || replay.Lease <= first.Lease {
				w.Errorf("the replay is %+v, after %+v", replay, first)
			}
			payloads, err := w.store.Payloads(w.ctx, []string{replay.EventID})
			w.must("Payloads", err)
			w.same("payload of the replay", payloads, payloadsOf(e))
			if !w.finish(outcome(&replay, again, at)) {
				w.Errorf("result %d of a replay was not accepted", again)
			}
			want := formsvc.DeliveryDelivered
			if again == delivery.Failed {
				want = formsvc.DeliveryFailed
			}
			if d := w.delivery(&e, &sc.hook); d.State != want || d.Attempts != 2 || len(d.Log) != 2 {
				w.Errorf("result %d of a replay after %d: %+v, want it %s after 2 attempts", again, result, d, want)
			}
			if claims := w.claim(at.Add(1000 * time.Hour)); len(claims) != 0 {
				w.Errorf("a replay was claimed twice")
			}
		}
	}
}

// testRedeliverPending redelivers deliveries that wait for their first attempt, a retry or a redelivery: only the due
// time changes, to an earlier or later one.
func testRedeliverPending(w *world) {
	for _, kind := range []delivery.Kind{delivery.First, delivery.Retry, delivery.Replay} {
		for _, by := range []time.Duration{-time.Hour, 0, time.Hour} {
			sc := w.addScene()
			m := w.addMix(sc, nextDay(), map[delivery.Kind][]time.Duration{kind: {0}})
			before := m[kind][0]
			at := nextDay().Add(by)
			w.redeliver(&formsvc.Event{ID: before.EventID}, &sc.hook, at)
			if claims := w.claim(at.Add(-time.Microsecond)); len(claims) != 0 {
				w.Errorf("kind %d, moved by %v: claimed before it is due", kind, by)
			}
			claim := w.claimOne(at)
			if claim.Kind != kind || claim.Attempts != before.Attempts || claim.ID != string(before.ID) {
				w.Errorf("kind %d, moved by %v: claimed as %+v, want %d attempts as before", kind, by, claim, before.Attempts)
			}
			w.finish(outcome(&claim, delivery.Delivered, at))
		}
	}
}

func testRedeliverClaimed(w *world) {
	for _, kind := range []delivery.Kind{delivery.First, delivery.Retry, delivery.Replay} {
		sc := w.addScene()
		m := w.addMix(sc, nextDay(), map[delivery.Kind][]time.Duration{kind: {0}})
		key := deliveryKey(&m[kind][0])
		claim := w.takeOne(nextDay(), &sc.hook)
		before := w.snapshot()
		for _, at := range []time.Time{nextDay(), nextDay().Add(lease - time.Microsecond)} {
			_, err := w.store.Redeliver(w.ctx, key, at, nil)
			w.wantError("Redeliver during an attempt", err, formsvc.ErrConflict)
		}
		w.unchanged("Redeliver during an attempt", &before)
		if !w.finish(outcome(&claim, delivery.Failed, nextDay())) {
			w.Errorf("the attempt under way could not be finished")
		}
		w.redeliver(&formsvc.Event{ID: m[kind][0].EventID}, &sc.hook, nextDay())

		lost := w.takeOne(nextDay(), &sc.hook) // its worker dies
		at := nextDay().Add(lease)
		w.redeliver(&formsvc.Event{ID: m[kind][0].EventID}, &sc.hook, at)
		held := w.takeOne(at, &sc.hook)
		if held.Kind != delivery.Replay || held.Lease <= lost.Lease {
			w.Errorf("claimed as %+v, want a replay with a lease over %d", held, lost.Lease)
		}
		if w.finish(outcome(&lost, delivery.Delivered, nextDay())) || !w.finish(outcome(&held, delivery.Delivered, at)) {
			w.Errorf("the lost claim finished the delivery, or the one that is held did not")
		}
	}
}

func testRedeliverDisabled(w *world) {
	sc := w.addScene()
	done, waits := w.addDue(&sc.campaign, start()), w.addDue(&sc.campaign, nextDay())
	w.attend(&sc.hook, start(), delivery.Delivered)
	w.change(&sc.hook, disable)
	w.redeliver(&waits, &sc.hook, nextDay())
	if claims := w.claim(nextDay()); len(claims) != 0 {
		w.Errorf("a first attempt was claimed for a disabled webhook")
	}
	w.redeliver(&done, &sc.hook, nextDay())
	if claim := w.claimOne(nextDay()); claim.EventID != string(done.ID) || claim.Kind != delivery.Replay {
		w.Errorf("claimed %+v, want the replay", claim)
	}
	w.change(&sc.hook, enable)
	if claim := w.claimOne(nextDay()); claim.EventID != string(waits.ID) || claim.Kind != delivery.First {
		w.Errorf("claimed %+v, want the first attempt", claim)
	}
}

func testRedeliverGone(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	pruned := w.delivery(&e, &sc.hook)
	w.prune(nextDay(), 100)
	_, err := w.store.Redeliver(w.ctx, deliveryKey(&pruned), nextDay(), nil)
	w.wantError("Redeliver after its event was pruned", err, formsvc.ErrNotFound)
	q := formsvc.RedeliverQuery{Key: webhookKey(&sc.hook), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 10}
	if n, err := w.store.RedeliverFailed(w.ctx, q, nil); n != 0 || err != nil {
		w.Errorf("RedeliverFailed after the events were pruned: %d, %v; want none", n, err)
	}

	_, e = w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	orphan := w.delivery(&e, &sc.hook)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	_, err = w.store.Redeliver(w.ctx, deliveryKey(&orphan), nextDay(), nil)
	w.wantError("Redeliver to a deleted webhook", err, formsvc.ErrNotFound)
	_, err = w.store.Delivery(w.ctx, deliveryKey(&orphan))
	w.wantError("Delivery to a deleted webhook", err, formsvc.ErrNotFound)
	_, err = w.store.RedeliverFailed(w.ctx, q, nil)
	w.wantError("RedeliverFailed to a deleted webhook", err, formsvc.ErrNotFound)
	w.wantReady("everything is gone", nextDay().Add(time.Hour))
}

func testReplayFails(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Delivered)
	for range 2 {
		w.redeliver(&e, &sc.hook, nextDay())
		w.attend(&sc.hook, nextDay(), delivery.Failed)
	}
	if d := w.delivery(&e, &sc.hook); d.State != formsvc.DeliveryFailed {
		w.Errorf("the delivery is %s, want failed", d.State)
	}
	w.same("notices of a replay", w.notices(sc.account.ID), []formsvc.Notice{})
	w.wantFailures(nextDay().Add(time.Hour), 0)
	w.wantDigests(nextDay().Add(time.Hour))

	// A delivery that failed before keeps its notice.
	_, e = w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	before := w.notices(sc.account.ID)
	w.redeliver(&e, &sc.hook, nextDay())
	w.attend(&sc.hook, nextDay().Add(time.Minute), delivery.Failed)
	w.same("notices after a replay", w.notices(sc.account.ID), before)
	w.wantFailures(nextDay().Add(time.Hour), 1)
}

func testRedeliverTimes(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Delivered)
	d := w.delivery(&e, &sc.hook)
	at := nextDay().Add(1_999 * time.Nanosecond)
	got, err := w.store.Redeliver(w.ctx, deliveryKey(&d), at.In(time.FixedZone("", 3600)), nil)
	w.must("Redeliver", err)
	w.same("DueAt", got.DueAt, nextDay().Add(time.Microsecond))
}

func testRedeliverRace(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Delivered)
	key := formsvc.DeliveryKey{AccountID: sc.account.ID, ID: formsvc.DeliveryID(e.ID, sc.hook.ID)}
	w.race(16, nil, func() error {
		_, err := w.store.Redeliver(w.ctx, key, nextDay(), nil)
		return err
	})
	if claims := w.attend(&sc.hook, nextDay(), delivery.Delivered); len(claims) != 1 {
		w.Errorf("%d claims after 16 asked for a replay at once, want 1", len(claims))
	}
	w.wantReady("the replay is done", nextDay().Add(time.Hour))
}

// failAt makes one delivery of the scene fail with an attempt that ends at that time.
func (w *world) failAt(sc *scene, at time.Time) formsvc.Event {
	w.Helper()
	_, e := w.addResponse(&sc.campaign)
	claim := w.takeOne(nextDay(), &sc.hook)
	if !w.finish(outcome(&claim, delivery.Failed, at.Add(-time.Second))) {
		w.Errorf("the failure was not accepted")
	}
	return e
}

func testRedeliverBounds(w *world) {
	second := func(n int) time.Time { return nextDay().Add(time.Duration(n) * time.Second) }
	for _, x := range []struct {
		since, until time.Time
		want         []int
	}{
		{second(2), second(4), []int{2, 3, 4}},
		{second(3), second(3), []int{3}},
		{second(2).Add(time.Microsecond), second(4).Add(-time.Microsecond), []int{3}},
		{second(-100), second(1), []int{1}},
		{time.Time{}, second(100), []int{1, 2, 3, 4, 5}},
		{second(5).In(time.FixedZone("", 3600)), second(100), []int{5}},
		{second(6), second(100), nil},
		{second(4), second(2), nil},
	} {
		sc := w.addScene()
		byTime := map[string]int{}
		for _, n := range []int{3, 5, 1, 2, 4} {
			e := w.failAt(sc, second(n))
			byTime[string(e.ID)] = n
		}
		n, err := w.store.RedeliverFailed(w.ctx, formsvc.RedeliverQuery{
			Key: webhookKey(&sc.hook), Since: x.since, Until: x.until, At: nextDay(), Limit: 100,
		}, nil)
		w.must("RedeliverFailed", err)
		var got []int
		for _, c := range w.claim(nextDay()) {
			got = append(got, byTime[c.EventID])
			if c.Kind != delivery.Replay || c.Attempts != 1 {
				w.Errorf("claimed as %+v, want a replay after one attempt", c)
			}
		}
		slices.Sort(got)
		w.same(fmt.Sprintf("failures from %v to %v", x.since, x.until), got, x.want)
		if n != len(x.want) {
			w.Errorf("RedeliverFailed from %v to %v: %d, want %d", x.since, x.until, n, len(x.want))
		}
	}
}

// testRedeliverPace redelivers five in two steps, in the order of their failures.
func testRedeliverPace(w *world) {
	sc := w.addScene()
	byTime := make([]formsvc.Event, 5)
	for _, n := range []int{3, 0, 4, 1, 2} {
		byTime[n] = w.failAt(sc, nextDay().Add(time.Duration(n)*time.Millisecond))
	}
	at := nextDay().Add(time.Hour)
	q := formsvc.RedeliverQuery{
		Key: webhookKey(&sc.hook), Since: nextDay(), Until: at, At: at, Pace: 20 * time.Millisecond, Limit: 3,
	}
	for i, want := range []int{3, 2, 0} {
		q.At = at.Add(time.Duration(i) * time.Minute)
		n, err := w.store.RedeliverFailed(w.ctx, q, nil)
		if n != want || err != nil {
			w.Errorf("RedeliverFailed, step %d: %d, %v; want %d", i+1, n, err, want)
		}
	}
	for n, due := range []time.Duration{
		0, 20 * time.Millisecond, 40 * time.Millisecond, time.Minute, time.Minute + 20*time.Millisecond,
	} {
		d := w.delivery(&byTime[n], &sc.hook)
		if d.State != formsvc.DeliveryPending || !d.DueAt.Equal(at.Add(due)) {
			w.Errorf("failure %d is %s and due %v, want it pending and due %v", n, d.State, d.DueAt, at.Add(due))
		}
	}
	q.Limit = 0
	w.failAt(sc, nextDay().Add(time.Second))
	if n, err := w.store.RedeliverFailed(w.ctx, q, nil); n != 0 || err != nil {
		w.Errorf("RedeliverFailed with limit 0: %d, %v; want none", n, err)
	}
}

func testRedeliverFailedOnly(w *world) {
	sc, other := w.addScene(), w.addScene()
	neighbour := w.addWebhook(sc.account.ID)
	w.addMix(sc, nextDay(), map[delivery.Kind][]time.Duration{delivery.First: {0}, delivery.Retry: {0}, delivery.Replay: {0}})
	w.addDue(&sc.campaign, start())
	w.attend(&sc.hook, start(), delivery.Delivered)
	w.attend(&neighbour, start(), delivery.Failed)
	w.addDue(&other.campaign, start())
	w.attend(&other.hook, start(), delivery.Failed)
	before := w.snapshot()
	q := formsvc.RedeliverQuery{Key: webhookKey(&sc.hook), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 100}
	if n, err := w.store.RedeliverFailed(w.ctx, q, nil); n != 0 || err != nil {
		w.Errorf("RedeliverFailed: %d, %v; want none", n, err)
	}
	w.unchanged("RedeliverFailed of a webhook without failures", &before)
	w.change(&neighbour, disable)
	q.Key = webhookKey(&neighbour)
	n, err := w.store.RedeliverFailed(w.ctx, q, nil)
	if claims := w.take(nextDay(), share(&neighbour, 100)); n == 0 || len(claims) != n || err != nil {
		w.Errorf("RedeliverFailed of a disabled webhook: %d, %v, and %d claims; want as many", n, err, len(claims))
	}
	w.wantReady("the other account", nextDay(), &sc.hook)
}

// testRedeliverFailedRace redelivers failures concurrently: each is counted once.
func testRedeliverFailedRace(w *world) {
	sc := w.addScene()
	const failed = 60
	for i := range failed {
		w.failAt(sc, nextDay().Add(time.Duration(i)*time.Second))
	}
	q := formsvc.RedeliverQuery{
		Key: webhookKey(&sc.hook), Since: start(), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 7,
	}
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		total int
	)
	work := func() {
		for {
			n, err := w.store.RedeliverFailed(w.ctx, q, nil)
			w.check("RedeliverFailed", err)
			mu.Lock()
			total += n
			tooMany := total > failed
			mu.Unlock()
			if n == 0 || tooMany {
				return
			}
		}
	}
	for range 8 {
		all.Go(work)
	}
	all.Wait()
	work()
	if claims := w.attend(&sc.hook, nextDay(), delivery.Delivered); total != failed || len(claims) != failed {
		w.Errorf("%d of %d failures were redelivered and %d claimed", total, failed, len(claims))
	}
}

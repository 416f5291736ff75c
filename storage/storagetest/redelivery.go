package storagetest

import (
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

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

package storagetest

import (
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// failures leases notices and returns them.
func (w *world) failures(now, until time.Time, limit int) []delivery.Failure {
	w.Helper()
	list, err := w.store.Failures(w.ctx, now, until, limit)
	w.must("Failures", err)
	return list
}

// wantFailures leases all notices for good, and fails the test unless there are want of them.
func (w *world) wantFailures(now time.Time, want int) {
	w.Helper()
	if list := w.failures(now, now.Add(10_000*time.Hour), 1_000); len(list) != want {
		w.Errorf("Failures at %v: %+v, want %d", now, list, want)
	}
}

// failed returns the notice of a claim that failed with an attempt.
func failed(c *delivery.Claim, hook *formsvc.Webhook, a *delivery.Attempt) formsvc.Notice {
	return formsvc.Notice{
		DeliveryID: formsvc.ID(c.ID), AccountID: hook.AccountID, WebhookID: hook.ID, EventID: formsvc.ID(c.EventID),
		Event: formsvc.EventType(c.Event), Attempts: c.Attempts + 1, Status: a.Status, Error: a.Error,
		At: a.StartedAt.Add(a.Duration),
	}
}

// addFailures makes n deliveries fail, a second apart, and returns them in that order. Their events and accounts are in
// another order.
func (w *world) addFailures(n int) []string {
	w.Helper()
	scenes := []*scene{w.addScene(), w.addScene()}
	ids := make([]string, n)
	claims := map[int][]delivery.Claim{}
	for i := range n {
		w.addResponse(&scenes[i%2].campaign)
	}
	for i, sc := range scenes {
		claims[i] = w.take(nextDay(), share(&sc.hook, n))
	}
	for i := range n {
		c := claims[i%2][i/2]
		w.finish(outcome(&c, delivery.Failed, nextDay().Add(time.Duration(i)*time.Second)))
		ids[i] = c.ID
	}
	return ids
}

func deliveriesOf(list []delivery.Failure) []string {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].Delivery
	}
	return ids
}

func testFailureLease(w *world) {
	ids := w.addFailures(7)
	now := nextDay().Add(time.Hour)
	until := now.Add(lease)
	w.same("no room", deliveriesOf(w.failures(now, until, 0)), []string{})
	w.same("the first three", deliveriesOf(w.failures(now, until, 3)), ids[:3])
	w.same("the next three", deliveriesOf(w.failures(now, until, 3)), ids[3:6])
	w.same("the last", deliveriesOf(w.failures(now, until.Add(lease), 3)), ids[6:])
	w.same("all are leased", deliveriesOf(w.failures(until.Add(-time.Microsecond), until, 10)), []string{})
	w.same("six leases ended", deliveriesOf(w.failures(until, until.Add(lease), 10)), ids[:6])
	w.same("all leases ended", deliveriesOf(w.failures(until.Add(lease), until.Add(2*lease), 10)), ids)
}

func (w *world) wantLeasedOnce(stores []Store, want []string) {
	w.Helper()
	now := nextDay().Add(time.Hour)
	var (
		mu      sync.Mutex
		got     []string
		workers sync.WaitGroup
	)
	drain := func(store Store) {
		for {
			list, err := store.Failures(w.ctx, now, now.Add(lease), 7)
			w.check("Failures", err)
			mu.Lock()
			got = append(got, deliveriesOf(list)...)
			enough := len(got) > len(want)
			mu.Unlock()
			if len(list) == 0 || enough {
				return
			}
		}
	}
	for i := range 8 {
		workers.Go(func() { drain(stores[i%len(stores)]) })
	}
	workers.Wait()
	drain(stores[0])
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	w.same("notices leased by many at once", got, want)
}

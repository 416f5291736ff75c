package formsvc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func (w *world) queue() *memory.Store {
	w.tb.Helper()
	q, ok := w.store.Store.(*memory.Store)
	if !ok {
		w.tb.Fatal("not the store in memory")
	}
	return q
}

// attempt makes one attempt with that result and duration for every due delivery, and returns the
// claims. Its receivers name eve.
func (w *world) attempt(result delivery.Result, took time.Duration) []delivery.Claim {
	w.tb.Helper()
	now := w.clock.Now()
	endpoints := must(w.queue().Ready(w.ctx, now))
	req := delivery.ClaimRequest{Now: now, Lease: time.Minute}
	for _, e := range endpoints {
		req.Shares = append(req.Shares, delivery.Share{Endpoint: e.ID, N: 10_000})
	}
	claims := must(w.queue().Claim(w.ctx, req))
	outcomes := make([]delivery.Outcome, len(claims))
	for i, c := range claims {
		outcomes[i] = delivery.Outcome{
			ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: result, Due: now.Add(time.Hour),
			Attempt: delivery.Attempt{
				Number: c.Attempts + 1, StartedAt: now, Duration: took, Status: 500, Error: delivery.ClassStatus, Answer: []byte("no user " + eve),
			},
		}
	}
	must(w.queue().Finish(w.ctx, outcomes))
	return claims
}

func (w *world) finish(result delivery.Result) []delivery.Claim { return w.attempt(result, 0) }

// All deliveries that failed since a time are sent again, once each and spread over time, in any
// number of atomic writes.
func TestRedeliverFailed(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Events = created() })
	w.submitted(&c)
	w.finish(delivery.Failed) // too early
	w.clock.add(time.Hour)
	since := w.clock.Now()
	const failed = 1_200
	for range failed {
		w.submitted(&c)
	}
	w.finish(delivery.Failed)
	w.submitted(&c)
	w.finish(delivery.Delivered)
	w.clock.add(time.Hour)
	_, o := w.once("k")
	redeliver := func(svc *formsvc.Service) (int, error) {
		return svc.Deliveries.RedeliverFailed(w.ctx, hookKey(&hook), since)
	}
	n, repeated, err := formsvc.Do(w.svc, formsvc.Call{Idempotency: o}, redeliver)
	if err != nil || n != failed || repeated {
		t.Fatalf("%d, %v", n, err)
	}
	equal(t, must(w.svc.Deliveries.RedeliverFailed(w.ctx, hookKey(&hook), since)), 0, "again: %d")
	equal(t, len(w.finish(delivery.Failed)), 1, "%d are due at once")
	w.clock.add(failed*20*time.Millisecond - time.Second)
	if got := len(w.finish(delivery.Failed)); got < failed-100 || got >= failed-1 {
		t.Errorf("%d are due a second before the last", got)
	}
	w.clock.add(time.Second)
	w.finish(delivery.Failed)
	n, repeated, err = formsvc.Do(w.svc, formsvc.Call{Idempotency: o}, redeliver) // in several atomic writes, none of which it makes
	if err != nil || n != failed || !repeated {
		t.Errorf("repeated: %d, %v", n, err)
	}
	if n := w.deliveries(&hook, formsvc.DeliveryFailed); n != failed+1 { // and the one that is too early
		t.Errorf("%d have failed", n)
	}
}

// Deliveries with answers of a deleted response can't be sent again, one by one or all that failed. Identifiers and tests can.
func TestRedeliverAfterDeletion(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Events = append(created(), "response.deleted") })
	gone := w.submitted(&c)
	w.submitted(&c)
	must(w.svc.Webhooks.Test(w.ctx, hookKey(&hook)))
	noError(t, w.svc.Responses.Delete(w.ctx, gone.Key(), nil))
	w.finish(delivery.Failed)
	page := must(w.svc.Deliveries.List(w.ctx, formsvc.DeliveryQuery{AccountID: w.account, WebhookID: hook.ID, Page: formsvc.PageQuery{Ascending: true}}))
	if len(page.Items) != 4 {
		t.Fatalf("%d deliveries", len(page.Items))
	}
	n, err := w.svc.Deliveries.RedeliverFailed(w.ctx, hookKey(&hook), time.Time{})
	if err != nil || n != 3 {
		t.Errorf("%d are sent again, %v", n, err)
	}
	w.clock.add(time.Minute)
	w.finish(delivery.Failed)
	for i := range page.Items {
		var want error
		e := must(w.svc.Events.Get(w.ctx, w.account, page.Items[i].EventID))
		if e.ResponseID == gone.ID && e.Type == webhook.ResponseCreated {
			want = formsvc.ErrResponseDeleted
		}
		wantError(t, failure(w.svc.Deliveries.Redeliver(w.ctx, formsvc.DeliveryKey{AccountID: w.account, ID: page.Items[i].ID})), want)
	}
}

// If a delivery's process died and its lease has ended, no attempt is shown as under way, and the
// delivery can be sent again.
func TestLostAttemptIsNotUnderWay(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Events = created() })
	w.submitted(&c)
	claimed := w.clock.Now()
	claims, err := w.queue().Claim(w.ctx, delivery.ClaimRequest{
		Now: claimed, Lease: time.Minute, Shares: []delivery.Share{{Endpoint: string(hook.ID), N: 1}},
	})
	if err != nil || len(claims) != 1 {
		t.Fatalf("claimed %+v, %v", claims, err)
	}
	key := formsvc.DeliveryKey{AccountID: w.account, ID: formsvc.ID(claims[0].ID)}
	shown := func(want time.Time) {
		t.Helper()
		one, err := w.svc.Deliveries.Get(w.ctx, key)
		page, listErr := w.svc.Deliveries.List(w.ctx, formsvc.DeliveryQuery{AccountID: w.account, WebhookID: hook.ID})
		if err := errors.Join(err, listErr); err != nil || len(page.Items) != 1 {
			t.Fatalf("listed %+v, %v", page, err)
		}
		for _, d := range []formsvc.Delivery{one, page.Items[0]} {
			if d.SendingSince != want || d.State != formsvc.DeliveryPending || d.DueAt != claimed.Add(time.Minute) {
				t.Errorf("%v after the claim it is %+v", w.clock.Now().Sub(claimed), d)
			}
		}
	}
	shown(claimed)
	w.clock.add(time.Minute - time.Millisecond)
	shown(claimed)
	wantError(t, failure(w.svc.Deliveries.Redeliver(w.ctx, key)), formsvc.ErrConflict)
	w.clock.add(time.Millisecond)
	shown(time.Time{})
	if d, err := w.svc.Deliveries.Redeliver(w.ctx, key); err != nil || !d.SendingSince.IsZero() || d.DueAt != w.clock.Now() {
		t.Errorf("sent again as %+v, %v", d, err)
	}
}

package storagetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func results() []delivery.Result {
	return []delivery.Result{delivery.Delivered, delivery.Postponed, delivery.Failed, delivery.Released}
}

// wantDelivery fails the test unless the webhook's one delivery is as wanted. DueAt isn't specified once a delivery is
// done.
func (w *world) wantDelivery(what string, hook *formsvc.Webhook, want formsvc.Delivery) {
	w.Helper()
	list := w.deliveries(hook)
	if len(list) == 1 && want.State != formsvc.DeliveryPending {
		list[0].DueAt = want.DueAt
	}
	w.same(what+": deliveries", list, []formsvc.Delivery{want})
}

// attempted adds an attempt with its result to the wanted delivery.
func attempted(d *formsvc.Delivery, o *delivery.Outcome) {
	if o.Result == delivery.Released {
		return
	}
	d.Attempts++
	d.UpdatedAt = o.Attempt.StartedAt.Add(o.Attempt.Duration)
	d.Log = append(d.Log, logged(o.Attempt))
}

// testFencing has another worker claim a delivery after its lease has expired.
func testFencing(w *world) {
	for _, result := range results() {
		sc := w.addScene()
		w.addResponse(&sc.campaign)
		lost := w.claimOne(nextDay())
		now := nextDay().Add(lease)
		held := w.claimOne(now)
		before := w.snapshot()
		late := outcome(&lost, result, nextDay())
		late.Due = start()
		for _, token := range []int64{lost.Lease, held.Lease + 1, 0, -1} {
			late.Lease = token
			if w.finish(late) {
				w.Errorf("result %d for lease %d was accepted while another has lease %d", result, token, held.Lease)
			}
		}
		w.unchanged(fmt.Sprintf("result %d for a lost lease", result), &before)
		w.wantFailures(now, 0)
		if claims := w.claim(now); len(claims) != 0 {
			w.Errorf("result %d for a lost lease made the delivery due", result)
		}
		// The worker that holds the claim isn't affected.
		if !w.finish(outcome(&held, result, now)) {
			w.Errorf("result %d for the lease that is held was not accepted", result)
		}
		want := 1
		if result == delivery.Released {
			want = 0
		}
		if list := w.deliveries(&sc.hook); len(list) != 1 || list[0].Attempts != want || len(list[0].Log) != want {
			w.Errorf("result %d: %+v, want %d attempts", result, list, want)
		}
		w.wantFailures(now.Add(time.Second), len(w.notices(sc.account.ID)))
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	}
}

func testLateFinish(w *world) {
	for _, result := range results() {
		sc, other := w.addScene(), w.addScene()
		w.addResponse(&sc.campaign)
		claim := w.claimOne(nextDay())
		later := nextDay().Add(time.Hour)
		// A claim of other webhooks doesn't take the delivery after its lease has expired.
		w.wantReady("the lease ended", later, &sc.hook)
		if claims := w.take(later, share(&other.hook, 10), share(&sc.hook, 0)); len(claims) != 0 {
			w.Errorf("claimed for an endpoint without room")
		}
		o := outcome(&claim, result, nextDay())
		o.Due = later
		if !w.finish(o) {
			w.Errorf("result %d for an ended lease was not accepted, though nobody else has it", result)
		}
		if w.finish(o) {
			w.Errorf("result %d for an ended lease was accepted twice", result)
		}
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	}
}

func testFinishRace(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	claim := w.claimOne(nextDay())
	o := outcome(&claim, delivery.Postponed, nextDay())
	var (
		workers  sync.WaitGroup
		accepted atomic.Int64
	)
	for range 16 {
		workers.Go(func() {
			got, err := w.store.Finish(w.ctx, []delivery.Outcome{o})
			w.check("Finish", err)
			if len(got) == 1 && got[0] {
				accepted.Add(1)
			}
		})
	}
	workers.Wait()
	if n := accepted.Load(); n != 1 {
		w.Errorf("%d of 16 outcomes of one claim were accepted, want 1", n)
	}
	want := pending(&e, &sc.hook)
	want.DueAt = nextDay()
	attempted(&want, &o)
	w.wantDelivery("one outcome of 16", &sc.hook, want)
}

// testLargeBatch records more outcomes than fit one statement.
func testLargeBatch(w *world) {
	c, hooks := w.endpoints(2)
	for range 50 {
		w.addResponse(&c)
	}
	claims := w.claim(nextDay())
	outcomes := make([]delivery.Outcome, len(claims))
	want, again := make([]bool, len(claims)), make([]bool, len(claims))
	for i := range claims {
		outcomes[i], want[i] = outcome(&claims[i], results()[i%4], nextDay()), true
	}
	w.same("accepted", w.finishAll(outcomes...), want)
	w.same("accepted again", w.finishAll(outcomes...), again)
	byID := make(map[string]*delivery.Outcome, len(outcomes))
	for i := range outcomes {
		byID[outcomes[i].ID] = &outcomes[i]
	}
	for i := range hooks {
		list := w.deliveries(&hooks[i])
		if len(list) != 50 {
			w.Fatalf("%d deliveries, want 50", len(list))
		}
		for _, d := range list {
			o := byID[string(d.ID)]
			state := map[delivery.Result]formsvc.DeliveryState{
				delivery.Delivered: formsvc.DeliveryDelivered, delivery.Failed: formsvc.DeliveryFailed,
			}[o.Result]
			if state == "" {
				state = formsvc.DeliveryPending
			}
			counted := 1
			if o.Result == delivery.Released {
				counted = 0
			}
			if d.State != state || d.Attempts != counted || len(d.Log) != counted {
				w.Errorf("%+v after result %d", d, o.Result)
			}
		}
	}
}

// testWorkers has many workers at one queue, with a clock that lets the leases of slow workers expire. Each delivery is
// delivered once, and its attempts are those whose outcome was accepted.
func testWorkers(w *world) {
	c, hooks := w.endpoints(5)
	for range 12 {
		w.addResponse(&c)
	}
	var (
		mu        sync.Mutex
		attempts  = make(map[string]int)
		delivered = make(map[string]int)
		clock     atomic.Int64
	)
	many(func(random *rand.Rand) {
		for idle := 0; idle < 100; idle++ {
			now := nextDay().Add(time.Duration(clock.Add(1)) * 10 * time.Second)
			req := delivery.ClaimRequest{Now: now, Lease: lease}
			for i := range hooks {
				if random.IntN(2) == 0 {
					req.Shares = append(req.Shares, share(&hooks[i], 2))
				}
			}
			claims, err := w.store.Claim(w.ctx, req)
			w.check("Claim", err)
			for _, claim := range claims {
				idle = 0
				o := outcome(&claim, pick(random, append(results()[:2:2], delivery.Released, 0)...), now)
				if o.Result == 0 { // the worker dies
					continue
				}
				accepted, err := w.store.Finish(w.ctx, []delivery.Outcome{o})
				w.check("Finish", err)
				if len(accepted) == 1 && accepted[0] && o.Result != delivery.Released {
					mu.Lock()
					attempts[o.ID]++
					if o.Result == delivery.Delivered {
						delivered[o.ID]++
					}
					mu.Unlock()
				}
			}
		}
	})
	for i := range hooks {
		for _, d := range w.deliveries(&hooks[i]) {
			id := string(d.ID)
			if d.State != formsvc.DeliveryDelivered || delivered[id] != 1 || d.Attempts != attempts[id] || len(d.Log) != attempts[id] {
				w.Errorf("a delivery is %s with %d attempts; accepted: %d attempts, delivered %d times",
					d.State, d.Attempts, attempts[id], delivered[id])
			}
		}
	}
}

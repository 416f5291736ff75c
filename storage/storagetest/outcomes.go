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

func outcomeTests() []test {
	return []test{
		{"delivered and failed end it", testDone},
		{"retry and released make it due again", testDueAgain},
		{"attempts are counted when their result is known", testAttempts},
		{"a lost lease finishes nothing", testFencing},
		{"an ended lease that nobody took still finishes", testLateFinish},
		{"a claim is finished once", testFinishTwice},
		{"one outcome of many at once", testFinishRace},
		{"a batch is accepted one by one", testFinishBatch},
		{"workers that die, give back and come late", testWorkers},
	}
}

func results() []delivery.Result {
	return []delivery.Result{delivery.Delivered, delivery.Retry, delivery.Failed, delivery.Released}
}

// attempt is one that began at that time and took a second.
func attempt(number int, at time.Time) delivery.Attempt {
	return delivery.Attempt{
		Number: number, StartedAt: at, Duration: time.Second, Status: 500, Error: "status", Answer: []byte("\x00\xffanswer"),
	}
}

// wantDelivery fails the test unless the webhook's one delivery is as wanted.
// When a delivery is done, DueAt says nothing.
func (w *world) wantDelivery(what string, hook *formsvc.Webhook, want formsvc.Delivery) {
	w.Helper()
	list := w.deliveries(hook)
	if len(list) == 1 && want.State != formsvc.DeliveryPending {
		list[0].DueAt = want.DueAt
	}
	w.same(what+": deliveries", list, []formsvc.Delivery{want})
}

func testDone(w *world) {
	for result, state := range map[delivery.Result]formsvc.DeliveryState{
		delivery.Delivered: formsvc.DeliveryDelivered, delivery.Failed: formsvc.DeliveryFailed,
	} {
		sc := w.addScene()
		_, e := w.addResponse(&sc.campaign)
		want := pending(&e, &sc.hook)
		claim := w.claimOne(request(nextDay()))
		o := delivery.Outcome{ID: claim.ID, Lease: claim.Lease, Result: result, Attempt: attempt(1, nextDay())}
		if !w.finish(o) {
			w.Errorf("result %d was not accepted", result)
		}
		want.State, want.Attempts, want.UpdatedAt = state, 1, nextDay().Add(time.Second)
		w.wantDelivery(string(state), &sc.hook, want)
		if claims := w.claim(request(nextDay().Add(1000 * time.Hour))); len(claims) != 0 {
			w.Errorf("claimed a delivery that is %s", state)
		}
		w.wantDelivery(string(state)+", later", &sc.hook, want)
	}
}

func testDueAgain(w *world) {
	for _, result := range []delivery.Result{delivery.Retry, delivery.Released} {
		for _, wait := range []time.Duration{-time.Hour, 0, time.Microsecond, 30 * time.Minute} {
			sc := w.addScene()
			_, e := w.addResponse(&sc.campaign)
			want := pending(&e, &sc.hook)
			claim := w.claimOne(request(nextDay()))
			due := nextDay().Add(wait)
			o := delivery.Outcome{
				ID: claim.ID, Lease: claim.Lease, Result: result, Due: due.In(time.FixedZone("", 7200)), Attempt: attempt(1, nextDay()),
			}
			if !w.finish(o) {
				w.Errorf("result %d was not accepted", result)
			}
			want.DueAt = due
			if result == delivery.Retry {
				want.Attempts, want.UpdatedAt = 1, nextDay().Add(time.Second)
			}
			what := fmt.Sprintf("result %d, due %v later", result, wait)
			w.wantDelivery(what, &sc.hook, want)
			if claims := w.claim(request(due.Add(-time.Microsecond))); len(claims) != 0 {
				w.Errorf("%s: claimed before it was due", what)
			}
			again := w.claimOne(request(due))
			if again.Lease <= claim.Lease || again.Attempts != want.Attempts {
				w.Errorf("%s: claimed with lease %d after %d and %d attempts", what, again.Lease, claim.Lease, again.Attempts)
			}
			w.finish(delivery.Outcome{ID: again.ID, Lease: again.Lease, Result: delivery.Delivered})
		}
	}
}

func testAttempts(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	want := pending(&e, &sc.hook)
	now := nextDay()
	for _, result := range []delivery.Result{
		delivery.Released, delivery.Retry, delivery.Released, 0,
		delivery.Retry, delivery.Retry, delivery.Released, delivery.Failed,
	} {
		claim := w.claimOne(request(now))
		if claim.Attempts != want.Attempts {
			w.Errorf("claim says %d attempts, want %d", claim.Attempts, want.Attempts)
		}
		if result == 0 { // the claimer died: its lease ends
			now = now.Add(time.Minute)
			continue
		}
		next := now.Add(time.Hour)
		o := delivery.Outcome{
			ID: claim.ID, Lease: claim.Lease, Result: result, Due: next, Attempt: attempt(want.Attempts+1, now),
		}
		if !w.finish(o) {
			w.Errorf("result %d was not accepted", result)
		}
		want.DueAt = next
		if result != delivery.Released {
			want.Attempts++
			want.UpdatedAt = now.Add(time.Second)
		}
		if result == delivery.Failed {
			want.State = formsvc.DeliveryFailed
		}
		w.wantDelivery(fmt.Sprintf("result %d", result), &sc.hook, want)
		now = next
	}
}

// testFencing has a claim pass to somebody else when its lease ended.
func testFencing(w *world) {
	for _, result := range results() {
		sc := w.addScene()
		w.addResponse(&sc.campaign)
		lost := w.claimOne(request(nextDay()))
		now := nextDay().Add(time.Minute)
		held := w.claimOne(request(now))
		before := w.snapshot()
		late := delivery.Outcome{ID: lost.ID, Lease: lost.Lease, Result: result, Due: start(), Attempt: attempt(1, nextDay())}
		for _, lease := range []int64{lost.Lease, held.Lease + 1, 0, -1} {
			late.Lease = lease
			if w.finish(late) {
				w.Errorf("result %d for lease %d was accepted while another has lease %d", result, lease, held.Lease)
			}
		}
		w.unchanged(fmt.Sprintf("result %d for a lost lease", result), &before)
		if claims := w.claim(request(now)); len(claims) != 0 {
			w.Errorf("result %d for a lost lease made the delivery due", result)
		}
		// Whoever holds the claim notices nothing.
		o := delivery.Outcome{ID: held.ID, Lease: held.Lease, Result: result, Due: now, Attempt: attempt(1, now)}
		if !w.finish(o) {
			w.Errorf("result %d for the lease that is held was not accepted", result)
		}
		want := 1
		if result == delivery.Released {
			want = 0
		}
		if list := w.deliveries(&sc.hook); len(list) != 1 || list[0].Attempts != want {
			w.Errorf("result %d: %+v, want %d attempts", result, list, want)
		}
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook)))
	}
}

func testLateFinish(w *world) {
	for _, result := range results() {
		sc := w.addScene()
		w.addResponse(&sc.campaign)
		claim := w.claimOne(request(nextDay()))
		later := nextDay().Add(time.Hour)
		// A claim of others, at a time when the lease has ended, does not take it.
		req := request(later)
		req.PerEndpoint, req.Busy = 1, map[string]int{string(sc.hook.ID): 1}
		if claims := w.claim(req); len(claims) != 0 {
			w.Errorf("claimed for an endpoint without room")
		}
		o := delivery.Outcome{ID: claim.ID, Lease: claim.Lease, Result: result, Due: later, Attempt: attempt(1, nextDay())}
		if !w.finish(o) {
			w.Errorf("result %d for an ended lease was not accepted, though nobody else has it", result)
		}
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook)))
	}
}

func testFinishTwice(w *world) {
	for _, first := range results() {
		for _, second := range results() {
			sc := w.addScene()
			w.addResponse(&sc.campaign)
			claim := w.claimOne(request(nextDay()))
			o := delivery.Outcome{
				ID: claim.ID, Lease: claim.Lease, Result: first, Due: nextDay().Add(time.Hour), Attempt: attempt(1, nextDay()),
			}
			if !w.finish(o) {
				w.Errorf("result %d was not accepted", first)
			}
			before := w.snapshot()
			o.Result, o.Due = second, nextDay()
			if w.finish(o) {
				w.Errorf("result %d was accepted after result %d of the same claim", second, first)
			}
			w.unchanged("a second outcome", &before)
			w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook)))
		}
	}
}

func testFinishRace(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	claim := w.claimOne(request(nextDay()))
	var (
		workers  sync.WaitGroup
		accepted atomic.Int64
	)
	for range 16 {
		workers.Go(func() {
			got, err := w.store.Finish(w.ctx, []delivery.Outcome{{
				ID: claim.ID, Lease: claim.Lease, Result: delivery.Retry, Due: nextDay(), Attempt: attempt(1, nextDay()),
			}})
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
	want.DueAt, want.Attempts, want.UpdatedAt = nextDay(), 1, nextDay().Add(time.Second)
	w.wantDelivery("one outcome of 16", &sc.hook, want)
}

func testFinishBatch(w *world) {
	c, hooks := w.endpoints(6)
	w.addResponse(&c)
	claims := w.claim(request(nextDay()))
	outcomes := []delivery.Outcome{{ID: string(w.nextID()), Lease: 1, Result: delivery.Delivered}}
	want := []bool{false}
	byHook := map[string]delivery.Claim{}
	for _, claim := range claims {
		byHook[claim.Endpoint.ID] = claim
	}
	states := []formsvc.DeliveryState{"delivered", "pending", "failed", "pending", "pending", "pending"}
	for i, hook := range hooks {
		claim := byHook[string(hook.ID)]
		o := delivery.Outcome{ID: claim.ID, Lease: claim.Lease, Due: nextDay(), Attempt: attempt(1, nextDay())}
		if i < len(results()) {
			o.Result = results()[i]
		} else {
			o.Result = delivery.Delivered
			o.Lease += int64(2*i - 9) // one too low, one too high
		}
		outcomes, want = append(outcomes, o), append(want, i < len(results()))
	}
	accepted, err := w.store.Finish(w.ctx, outcomes)
	w.must("Finish", err)
	w.same("accepted", accepted, want)
	for i := range hooks {
		if list := w.deliveries(&hooks[i]); len(list) != 1 || list[0].State != states[i] {
			w.Errorf("delivery %d: %+v, want it %s", i, list, states[i])
		}
	}
}

// testWorkers has many workers at one queue, with a clock that outruns the
// leases of those who are slow. Whatever they do, each delivery is delivered
// once, and its attempts are those whose outcome was accepted.
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
			req := request(now)
			req.Limit, req.PerEndpoint = 5, 2
			claims, err := w.store.Claim(w.ctx, req)
			w.check("Claim", err)
			for _, claim := range claims {
				idle = 0
				o := delivery.Outcome{ID: claim.ID, Lease: claim.Lease, Due: now, Attempt: attempt(1, now)}
				o.Result = pick(random, append(results()[:2:2], delivery.Released, 0)...)
				if o.Result == 0 { // dies
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
			if d.State != formsvc.DeliveryDelivered || delivered[id] != 1 || d.Attempts != attempts[id] {
				w.Errorf("a delivery is %s with %d attempts; accepted: %d attempts, delivered %d times",
					d.State, d.Attempts, attempts[id], delivered[id])
			}
		}
	}
}

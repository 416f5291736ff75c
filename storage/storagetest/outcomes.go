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
		{"delivered and failed are final", testDone},
		{"postponed and released are due again", testDueAgain},
		{"released delivery keeps its kind", testReleasedKind},
		{"finishing counts the attempt", testAttempts},
		{"lost lease can't finish", testFencing},
		{"expired lease can finish until claimed again", testLateFinish},
		{"claim finishes once", testFinishTwice},
		{"claim finishes once in a batch", testFinishTwiceAtOnce},
		{"one of many concurrent outcomes wins", testFinishRace},
		{"outcomes of a batch are independent", testFinishBatch},
		{"a large batch", testLargeBatch},
		{"workers that die, release and come late", testWorkers},
	}
}

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

func testDone(w *world) {
	for result, state := range map[delivery.Result]formsvc.DeliveryState{
		delivery.Delivered: formsvc.DeliveryDelivered, delivery.Failed: formsvc.DeliveryFailed,
	} {
		sc := w.addScene()
		_, e := w.addResponse(&sc.campaign)
		want := pending(&e, &sc.hook)
		claim := w.claimOne(nextDay())
		o := outcome(&claim, result, nextDay())
		if !w.finish(o) {
			w.Errorf("result %d was not accepted", result)
		}
		attempted(&want, &o)
		want.State = state
		w.wantDelivery(string(state), &sc.hook, want)
		if claims := w.claim(nextDay().Add(1000 * time.Hour)); len(claims) != 0 {
			w.Errorf("claimed a delivery that is %s", state)
		}
		w.wantDelivery(string(state)+", later", &sc.hook, want)
	}
}

func testDueAgain(w *world) {
	for _, result := range []delivery.Result{delivery.Postponed, delivery.Released} {
		for _, wait := range []time.Duration{-time.Hour, 0, time.Microsecond, 30 * time.Minute} {
			sc := w.addScene()
			_, e := w.addResponse(&sc.campaign)
			want := pending(&e, &sc.hook)
			claim := w.claimOne(nextDay())
			due := nextDay().Add(wait)
			o := outcome(&claim, result, nextDay())
			o.Due = due.In(time.FixedZone("", 7200))
			if !w.finish(o) {
				w.Errorf("result %d was not accepted", result)
			}
			attempted(&want, &o)
			want.DueAt = due
			what := fmt.Sprintf("result %d, due %v later", result, wait)
			w.wantDelivery(what, &sc.hook, want)
			if claims := w.claim(due.Add(-time.Microsecond)); len(claims) != 0 {
				w.Errorf("%s: claimed before it was due", what)
			}
			again := w.claimOne(due)
			kind := delivery.First
			if result == delivery.Postponed {
				kind = delivery.Retry
			}
			if again.Lease <= claim.Lease || again.Attempts != want.Attempts || again.Kind != kind {
				w.Errorf("%s: claimed again as %+v after lease %d; want %d attempts, kind %d", what, again, claim.Lease, want.Attempts, kind)
			}
			w.finish(outcome(&again, delivery.Delivered, due))
		}
	}
}

// testReleasedKind releases deliveries of each kind, and lets their leases expire.
func testReleasedKind(w *world) {
	for _, kind := range []delivery.Kind{delivery.First, delivery.Retry, delivery.Replay} {
		sc := w.addScene()
		m := w.addMix(sc, nextDay(), map[delivery.Kind][]time.Duration{kind: {0}})
		before := m[kind][0]
		released := w.takeOne(nextDay(), &sc.hook)
		if !w.finish(outcome(&released, delivery.Released, nextDay())) {
			w.Errorf("the release of kind %d was not accepted", kind)
		}
		lost := w.takeOne(nextDay(), &sc.hook)
		last := w.takeOne(nextDay().Add(lease), &sc.hook)
		for _, c := range []delivery.Claim{released, lost, last} {
			if c.Kind != kind || c.Attempts != before.Attempts {
				w.Errorf("kind %d and %d attempts; want %d and %d, as no result is known", c.Kind, c.Attempts, kind, before.Attempts)
			}
		}
		before.SendingSince, before.DueAt = nextDay().Add(lease), nextDay().Add(2*lease)
		w.wantDelivery("released and lost", &sc.hook, before)
	}
}

func testAttempts(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	want := pending(&e, &sc.hook)
	now := nextDay()
	for _, result := range []delivery.Result{
		delivery.Released, delivery.Postponed, delivery.Released, 0,
		delivery.Postponed, delivery.Postponed, delivery.Released, delivery.Failed,
	} {
		claim := w.claimOne(now)
		if claim.Attempts != want.Attempts {
			w.Errorf("claim says %d attempts, want %d", claim.Attempts, want.Attempts)
		}
		if result == 0 { // the worker died: its lease expires
			now = now.Add(lease)
			continue
		}
		o := outcome(&claim, result, now)
		now = now.Add(time.Hour)
		o.Due = now
		if !w.finish(o) {
			w.Errorf("result %d was not accepted", result)
		}
		want.DueAt = now
		attempted(&want, &o)
		if result == delivery.Failed {
			want.State = formsvc.DeliveryFailed
		}
		w.wantDelivery(fmt.Sprintf("result %d", result), &sc.hook, want)
	}
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

func testFinishTwice(w *world) {
	for _, first := range results() {
		for _, second := range results() {
			sc := w.addScene()
			w.addResponse(&sc.campaign)
			claim := w.claimOne(nextDay())
			o := outcome(&claim, first, nextDay())
			o.Due = nextDay().Add(time.Hour)
			if !w.finish(o) {
				w.Errorf("result %d was not accepted", first)
			}
			before := w.snapshot()
			o.Result, o.Due = second, nextDay()
			if w.finish(o) {
				w.Errorf("result %d was accepted after result %d of the same claim", second, first)
			}
			w.unchanged("a second outcome", &before)
			w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
		}
	}
}

func testFinishTwiceAtOnce(w *world) {
	for _, result := range results() {
		sc := w.addScene()
		_, e := w.addResponse(&sc.campaign)
		claim := w.claimOne(nextDay())
		o := outcome(&claim, result, nextDay())
		accepted := w.finishAll(o, o, o)
		n := 0
		for _, ok := range accepted {
			if ok {
				n++
			}
		}
		if n != 1 {
			w.Errorf("result %d, three times in one batch: %d were accepted, want 1", result, n)
		}
		want := pending(&e, &sc.hook)
		attempted(&want, &o)
		got := w.delivery(&e, &sc.hook)
		w.same("attempts", got.Log, want.Log)
		if got.Attempts != want.Attempts {
			w.Errorf("result %d, three times in one batch: %d attempts, want %d", result, got.Attempts, want.Attempts)
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

func testFinishBatch(w *world) {
	c, hooks := w.endpoints(6)
	w.addResponse(&c)
	byHook := map[string]delivery.Claim{}
	for _, claim := range w.claim(nextDay()) {
		byHook[claim.Endpoint] = claim
	}
	unknown := delivery.Claim{ID: string(w.nextID()), Endpoint: string(hooks[0].ID), Lease: 1}
	outcomes := []delivery.Outcome{outcome(&unknown, delivery.Failed, nextDay())}
	want := []bool{false}
	states := []formsvc.DeliveryState{"delivered", "pending", "failed", "pending", "pending", "pending"}
	attempts := []int{1, 1, 1, 0, 0, 0}
	for i, hook := range hooks {
		claim := byHook[string(hook.ID)]
		o := outcome(&claim, delivery.Failed, nextDay())
		if i < len(results()) {
			o.Result = results()[i]
		} else {
			o.Lease += int64(2*i - 9) // one too low, one too high
		}
		outcomes, want = append(outcomes, o), append(want, i < len(results()))
	}
	w.same("accepted", w.finishAll(outcomes...), want)
	for i := range hooks {
		list := w.deliveries(&hooks[i])
		if len(list) != 1 || list[0].State != states[i] || list[0].Attempts != attempts[i] || len(list[0].Log) != attempts[i] {
			w.Errorf("delivery %d: %+v, want it %s with %d attempts", i, list, states[i], attempts[i])
		}
	}
	if list := w.notices(c.AccountID); len(list) != 1 || list[0].WebhookID != hooks[2].ID {
		w.Errorf("notices: %+v, want that of the third webhook", list)
	}
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

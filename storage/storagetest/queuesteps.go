package storagetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// lease is how long claims in a world last.
const lease = time.Minute

// share returns a share with room for n deliveries of a webhook.
func share(hook *formsvc.Webhook, n int) delivery.Share {
	return delivery.Share{Endpoint: string(hook.ID), N: n}
}

// late returns a share that prefers late deliveries.
func late(hook *formsvc.Webhook, n int) delivery.Share {
	return delivery.Share{Endpoint: string(hook.ID), N: n, LateFirst: true}
}

// take claims the deliveries that are due at that time.
func (w *world) take(now time.Time, shares ...delivery.Share) []delivery.Claim {
	w.Helper()
	claims, err := w.store.Claim(w.ctx, delivery.ClaimRequest{Now: now, Lease: lease, Shares: shares})
	w.must("Claim", err)
	seen := make(map[string]bool)
	for _, c := range claims {
		if seen[c.ID] {
			w.Errorf("Claim: delivery %s comes twice in one answer", c.ID)
		}
		seen[c.ID] = true
	}
	return claims
}

// takeOne claims the only due delivery of a webhook.
func (w *world) takeOne(now time.Time, hook *formsvc.Webhook) delivery.Claim {
	w.Helper()
	claims := w.take(now, share(hook, 10_000))
	if len(claims) != 1 {
		w.Fatalf("Claim at %v: %d claims, want 1", now, len(claims))
	}
	return claims[0]
}

// everyShare returns a share with room for all deliveries of every webhook in the world.
func (w *world) everyShare() []delivery.Share {
	w.mu.Lock()
	defer w.mu.Unlock()
	shares := make([]delivery.Share, len(w.hooks))
	for i, id := range w.hooks {
		shares[i] = delivery.Share{Endpoint: string(id), N: 10_000}
	}
	return shares
}

// claim claims all deliveries due at that time. It checks that Ready returns exactly the endpoints that get some, in
// order.
func (w *world) claim(now time.Time) []delivery.Claim {
	w.Helper()
	ready := w.ready(now)
	claims := w.take(now, w.everyShare()...)
	var served []string
	for _, c := range claims {
		served = append(served, c.Endpoint)
	}
	slices.Sort(served)
	w.same("endpoints that are ready, next to those that get claims", ready, slices.Compact(served))
	return claims
}

func (w *world) claimOne(now time.Time) delivery.Claim {
	w.Helper()
	claims := w.claim(now)
	if len(claims) != 1 {
		w.Fatalf("Claim at %v: %d claims, want 1", now, len(claims))
	}
	return claims[0]
}

// ready returns the identifiers of the endpoints with work.
func (w *world) ready(now time.Time) []string {
	w.Helper()
	endpoints, err := w.store.Ready(w.ctx, now)
	w.must("Ready", err)
	ids := make([]string, len(endpoints))
	for i := range endpoints {
		ids[i] = endpoints[i].ID
	}
	return ids
}

// outcome returns the outcome of a claim with an attempt that began at that time and took a second.
func outcome(c *delivery.Claim, result delivery.Result, at time.Time) delivery.Outcome {
	return delivery.Outcome{
		ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: result, Due: at, Attempt: attempt(c.Attempts+1, at),
	}
}

// attempt returns an attempt that began at that time and took a second.
func attempt(number int, at time.Time) delivery.Attempt {
	return delivery.Attempt{
		Number: number, StartedAt: at, Duration: time.Second, Status: 500, Error: "status", Answer: []byte("\x00\xffanswer"),
	}
}

// logged returns an attempt as the log shows it.
func logged(a delivery.Attempt) formsvc.Attempt {
	return formsvc.Attempt{
		Number: a.Number, StartedAt: a.StartedAt, Duration: a.Duration, Status: a.Status, Error: a.Error, Answer: a.Answer,
	}
}

// finish records one outcome and reports whether it was accepted.
func (w *world) finish(o delivery.Outcome) bool {
	w.Helper()
	return w.finishAll(o)[0]
}

func (w *world) finishAll(outcomes ...delivery.Outcome) []bool {
	w.Helper()
	accepted, err := w.store.Finish(w.ctx, outcomes)
	w.must("Finish", err)
	if len(accepted) != len(outcomes) {
		w.Fatalf("Finish: %d answers for %d outcomes", len(accepted), len(outcomes))
	}
	return accepted
}

// attend claims all due deliveries of a webhook and finishes them with that result, which must be accepted. Postponed
// deliveries are due again an hour later.
func (w *world) attend(hook *formsvc.Webhook, now time.Time, result delivery.Result) []delivery.Claim {
	w.Helper()
	claims := w.take(now, share(hook, 10_000))
	slices.SortFunc(claims, func(a, b delivery.Claim) int { return cmp.Compare(a.EventID, b.EventID) })
	for i := range claims {
		o := outcome(&claims[i], result, now)
		o.Due = now.Add(time.Hour)
		if !w.finish(o) {
			w.Errorf("result %d was not accepted", result)
		}
	}
	return claims
}

// addDue adds a delivery to each webhook of the campaign, due at that time, and returns its event.
func (w *world) addDue(c *formsvc.Campaign, due time.Time) formsvc.Event {
	w.Helper()
	r := w.newResponse(c)
	e := w.newEvent(&r)
	e.CreatedAt = due
	w.must("CreateResponse", w.create(r, e))
	return e
}

// delivery returns the delivery of an event to a webhook.
func (w *world) delivery(e *formsvc.Event, hook *formsvc.Webhook) formsvc.Delivery {
	w.Helper()
	key := formsvc.DeliveryKey{AccountID: hook.AccountID, ID: formsvc.DeliveryID(e.ID, hook.ID)}
	d, err := w.store.Delivery(w.ctx, key)
	w.must("Delivery", err)
	return d
}

// notices returns all notices of an account.
func (w *world) notices(account formsvc.ID) []formsvc.Notice {
	w.Helper()
	return all(w, "Notices", func(n *formsvc.Notice) formsvc.ID { return n.DeliveryID },
		func(q formsvc.PageQuery) (formsvc.Page[formsvc.Notice], error) {
			return w.store.Notices(w.ctx, formsvc.NoticeQuery{AccountID: account, Page: q})
		})
}

package storagetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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

// take claims the deliveries that are due at that time.
func (w *world) take(now time.Time, shares ...delivery.Share) []delivery.Claim {
	w.Helper()
	claims := must(w.store.Claim(w.ctx, delivery.ClaimRequest{Now: now, Lease: lease, Shares: shares}))(w, "Claim")
	slices.SortFunc(claims, func(a, b delivery.Claim) int { return cmp.Compare(a.ID, b.ID) })
	return claims
}

// outcome returns the outcome of a claim with an attempt that began at that time and took a second.
func outcome(c *delivery.Claim, result delivery.Result, at time.Time) delivery.Outcome {
	return delivery.Outcome{ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: result, Due: at, Attempt: attempt(c.Attempts+1, at)}
}

func attempt(number int, at time.Time) delivery.Attempt {
	return delivery.Attempt{
		Number: number, StartedAt: at, Duration: time.Second, Status: 500, Error: "status", Answer: []byte("\x00\xffanswer"),
	}
}

// finish records outcomes.
func (w *world) finish(outcomes ...delivery.Outcome) []bool {
	w.Helper()
	accepted, err := w.store.Finish(w.ctx, outcomes)
	w.check("Finish", err)
	return accepted
}

// attend claims all due deliveries of a webhook and finishes them with that result, which must be accepted.
func (w *world) attend(hook *formsvc.Webhook, now time.Time, result delivery.Result) {
	w.Helper()
	claims := w.take(now, share(hook, 10_000))
	outcomes := mapped(claims, func(c *delivery.Claim) delivery.Outcome { return outcome(c, result, now) })
	if slices.Contains(w.finish(outcomes...), false) {
		w.Errorf("result %d was not accepted", result)
	}
}

func results() []delivery.Result {
	return []delivery.Result{delivery.Delivered, delivery.Postponed, delivery.Released, delivery.Failed}
}

// manyOutcomes records more outcomes than fit one statement, twice.
func manyOutcomes(w *world) any {
	sc := w.addScene()
	second := w.addWebhook(sc.account.ID)
	w.addResponses(&sc.campaign, 50)
	var outcomes []delivery.Outcome
	for i, c := range w.take(nextDay(), share(&sc.hook, 100), share(&second, 100)) {
		outcomes = append(outcomes, outcome(&c, results()[i%4], nextDay()))
	}
	return [][]bool{w.finish(outcomes...), w.finish(outcomes...)}
}

// testKeptAttempts makes more attempts than are kept.
func testKeptAttempts(w *world) {
	sc := w.addScene()
	w.addResponses(&sc.campaign, 1)
	const made = formsvc.KeptAttempts + 3
	for i := range made {
		w.attend(&sc.hook, nextDay().Add(time.Duration(i)*time.Second), delivery.Postponed)
	}
	for _, d := range w.deliveries(&sc.hook) {
		if len(d.Log) != formsvc.KeptAttempts || d.Attempts != made || d.Log[0].Number != made-formsvc.KeptAttempts+1 || d.Log[formsvc.KeptAttempts-1].Number != made {
			w.Errorf("%d attempts, kept %+v", d.Attempts, d.Log)
		}
	}
}

// testWorkers has many workers at one queue, with a clock that lets the leases of slow workers expire. Each delivery is
// delivered once, and its attempts are those whose outcome was accepted.
func testWorkers(w *world) {
	sc := w.addScene()
	hooks := []formsvc.Webhook{sc.hook, w.addWebhook(sc.account.ID), w.addWebhook(sc.account.ID)}
	w.addResponses(&sc.campaign, 12)
	var (
		mu       sync.Mutex
		attempts = make(map[string][]delivery.Result) // accepted ones
		clock    atomic.Int64
	)
	many(func(random *rand.Rand) {
		for idle := 0; idle < 60; idle++ {
			now := nextDay().Add(time.Duration(clock.Add(1)) * 10 * time.Second)
			req := delivery.ClaimRequest{Now: now, Lease: lease}
			for i := range hooks {
				req.Shares = append(req.Shares, share(&hooks[i], random.IntN(3)))
			}
			claims, err := w.store.Claim(w.ctx, req)
			w.check("Claim", err)
			for _, claim := range claims {
				idle = 0
				i := random.IntN(4)
				if i == 3 { // the worker dies
					continue
				}
				o := outcome(&claim, results()[i], now)
				if w.finish(o)[0] && o.Result != delivery.Released {
					mu.Lock()
					attempts[o.ID] = append(attempts[o.ID], o.Result)
					mu.Unlock()
				}
			}
		}
	})
	for i := range hooks {
		for _, d := range w.deliveries(&hooks[i]) {
			done := attempts[string(d.ID)] // perhaps in another order than they were accepted
			delivered := slices.DeleteFunc(slices.Clone(done), func(r delivery.Result) bool { return r != delivery.Delivered })
			if d.State != formsvc.DeliveryDelivered || len(delivered) != 1 || d.Attempts != len(done) || len(d.Log) != min(len(done), formsvc.KeptAttempts) {
				w.Errorf("a delivery is %s with %d attempts; accepted: %v", d.State, d.Attempts, done)
			}
		}
	}
}

// drain has workers take until each is told that there is no more. Together they must get want IDs, each once.
func (w *world) drain(stores []Store, want int, take func(s Store) (ids []string, more bool)) {
	w.Helper()
	var mu sync.Mutex
	seen := make(map[string]int)
	total := 0
	work := func(i int) {
		for more := true; more; {
			var ids []string
			ids, more = take(stores[i%len(stores)])
			mu.Lock()
			for _, id := range ids {
				if seen[id]++; seen[id] > 1 && id != "" {
					w.Errorf("%s was given away %d times", id, seen[id])
				}
			}
			total += len(ids)
			more = more && total <= want
			mu.Unlock()
		}
	}
	together(8, work)
	work(0) // workers skip what another is about to get
	if total != want {
		w.Errorf("%d of %d were given away", total, want)
	}
}

func (w *world) claimedOnce(stores []Store) {
	sc := w.addScene()
	hooks := []formsvc.Webhook{sc.hook}
	for range 7 {
		hooks = append(hooks, w.addWebhook(sc.account.ID))
	}
	const n = 50
	w.addResponses(&sc.campaign, n)
	w.drain(stores, n*len(hooks), func(s Store) (ids []string, more bool) {
		req := delivery.ClaimRequest{Now: nextDay(), Lease: lease}
		for _, i := range rand.Perm(len(hooks)) {
			req.Shares = append(req.Shares, delivery.Share{Endpoint: string(hooks[i].ID), N: 1 + i%3, LateFirst: i%2 == 0})
		}
		claims, err := s.Claim(w.ctx, req)
		w.check("Claim", err)
		return mapped(claims, func(c *delivery.Claim) string { return c.ID }), len(claims) > 0
	})
}

// noticedOnce makes deliveries fail, leases their notices, and redelivers them.
func (w *world) noticedOnce(stores []Store) {
	sc := w.addScene()
	const n = 60
	w.addResponses(&sc.campaign, n)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	later := nextDay().Add(time.Hour)
	w.drain(stores, n, func(s Store) (ids []string, more bool) {
		list, err := s.Failures(w.ctx, later, later.Add(lease), 7)
		w.check("Failures", err)
		return mapped(list, func(f *delivery.Failure) string { return f.Delivery }), len(list) > 0
	})
	q := formsvc.RedeliverQuery{Key: webhookKey(&sc.hook), Until: later, At: later, Limit: 7}
	w.drain(stores, n, func(s Store) (ids []string, more bool) {
		n, err := s.RedeliverFailed(w.ctx, q, nil)
		w.check("RedeliverFailed", err)
		return make([]string, n), n > 0
	})
}

// digestsOnce claims digests while deliveries fail: each failure is reported once.
func (w *world) digestsOnce(stores []Store) {
	sc := w.addScene()
	hooks := []formsvc.Webhook{sc.hook, w.addWebhook(sc.account.ID), w.addWebhook(sc.account.ID)}
	w.addResponses(&sc.campaign, 30)
	claims := w.take(nextDay(), share(&hooks[0], 30), share(&hooks[1], 30), share(&hooks[2], 30))
	var next atomic.Int64
	w.drain(stores, len(claims), func(s Store) (ids []string, more bool) {
		if i := int(next.Add(1)) - 1; i < len(claims) {
			w.check("Finish", errorOf(s.Finish(w.ctx, []delivery.Outcome{outcome(&claims[i], delivery.Failed, nextDay())})))
			more = true
		}
		list, err := s.ClaimDigests(w.ctx, nextDay().Add(time.Minute), 0, lease, 2)
		w.check("ClaimDigests", err)
		for _, d := range list {
			w.check("FinishDigest", s.FinishDigest(w.ctx, d, nextDay()))
			ids = append(ids, make([]string, d.Failures)...)
		}
		if len(list) > 2 {
			w.Errorf("ClaimDigests: %d digests, limit 2", len(list))
		}
		return ids, more || len(list) > 0
	})
}

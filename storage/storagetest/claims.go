package storagetest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func testLease(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	now := nextDay()
	var last int64
	for range 3 {
		claim := w.claimOne(now)
		if last != 0 && claim.Lease <= last {
			w.Errorf("lease %d after %d, want it to grow", claim.Lease, last)
		}
		if claim.Attempts != 0 || claim.Kind != delivery.First {
			w.Errorf("%d attempts and kind %d, want none and %d: no result is known", claim.Attempts, claim.Kind, delivery.First)
		}
		last = claim.Lease
		for _, later := range []time.Duration{0, time.Second, lease - time.Microsecond} {
			if claims := w.claim(now.Add(later)); len(claims) != 0 {
				w.Errorf("claimed again %v into a lease of %v", later, lease)
			}
		}
		now = now.Add(lease)
	}
	req := delivery.ClaimRequest{Now: now, Lease: 3 * time.Hour, Shares: []delivery.Share{share(&sc.hook, 1)}}
	claims, err := w.store.Claim(w.ctx, req)
	if err != nil || len(claims) != 1 {
		w.Fatalf("Claim: %d claims, %v; want 1", len(claims), err)
	}
	if claims := w.claim(now.Add(3*time.Hour - time.Microsecond)); len(claims) != 0 {
		w.Errorf("claimed again within a lease of three hours")
	}
	w.claimOne(now.Add(3 * time.Hour))
}

// endpoints adds n webhooks to an account with a campaign.
func (w *world) endpoints(n int) (formsvc.Campaign, []formsvc.Webhook) {
	w.Helper()
	a := w.addAccount()
	c := w.addCampaign(a.ID)
	hooks := make([]formsvc.Webhook, n)
	for i := range hooks {
		hooks[i] = w.addWebhook(a.ID)
	}
	return c, hooks
}

func testClaimNobody(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	id := string(sc.hook.ID)
	for _, endpoint := range []string{
		"", "nope", string(w.nextID()), string(sc.account.ID), strings.ToUpper(id), "{" + id + "}", strings.ReplaceAll(id, "-", ""),
	} {
		claims := w.take(nextDay(), delivery.Share{Endpoint: endpoint, N: 10})
		if len(claims) != 0 {
			w.Errorf("claimed for the endpoint %q", endpoint)
		}
	}
	claims := w.take(nextDay(), delivery.Share{Endpoint: "nope", N: 10}, share(&sc.hook, 10))
	if len(claims) != 1 {
		w.Errorf("%d claims next to a share of no endpoint, want 1", len(claims))
	}
}

// A mix has a webhook's pending deliveries by kind.
type mix map[delivery.Kind][]formsvc.Delivery

// addMix adds pending deliveries of each kind to the scene's webhook, due at these times after now. The webhook must
// have no pending deliveries.
func (w *world) addMix(sc *scene, now time.Time, due map[delivery.Kind][]time.Duration) mix {
	w.Helper()
	m := mix{}
	for _, kind := range []delivery.Kind{delivery.Retry, delivery.Replay, delivery.First} {
		for _, after := range due[kind] {
			at := now.Add(after)
			if kind == delivery.First {
				e := w.addDue(&sc.campaign, at)
				m[kind] = append(m[kind], w.delivery(&e, &sc.hook))
				continue
			}
			e := w.addDue(&sc.campaign, start())
			claim := w.takeOne(start(), &sc.hook)
			o := outcome(&claim, delivery.Postponed, start())
			o.Due = at
			if kind == delivery.Replay {
				o.Result = delivery.Delivered
			}
			w.finish(o)
			d := w.delivery(&e, &sc.hook)
			if kind == delivery.Replay {
				_, err := w.store.Redeliver(w.ctx, deliveryKey(&d), at, nil)
				w.must("Redeliver", err)
			}
			m[kind] = append(m[kind], w.delivery(&e, &sc.hook))
		}
	}
	return m
}

// addLayers adds deliveries of each kind, late and early. Each later kind has been due for longer than the one before.
func (w *world) addLayers(sc *scene) mix {
	w.Helper()
	return w.addMix(sc, nextDay(), map[delivery.Kind][]time.Duration{
		delivery.First: {-time.Minute, -2 * time.Minute}, delivery.Retry: {-4 * time.Minute, -3 * time.Minute},
		delivery.Replay: {-5 * time.Minute, -6 * time.Minute},
	})
}

// wantTurns claims with that room until nothing is left. It fails the test unless the deliveries come in that order, as
// far as claims follow one another.
func (w *world) wantTurns(room delivery.Share, want []formsvc.Delivery) {
	w.Helper()
	for len(want) > 0 {
		turn := want[:min(room.N, len(want))]
		want = want[len(turn):]
		var ids, wantIDs []string
		for _, c := range w.take(nextDay(), room) {
			ids = append(ids, c.ID)
		}
		for i := range turn {
			wantIDs = append(wantIDs, string(turn[i].ID))
		}
		slices.Sort(ids)
		slices.Sort(wantIDs)
		w.same("deliveries of a claim", ids, wantIDs)
	}
	if rest := w.take(nextDay(), room); len(rest) != 0 {
		w.Errorf("%d more deliveries, want none", len(rest))
	}
}

func testClaimKinds(w *world) {
	for _, n := range []int{1, 3, 5, 100} {
		sc := w.addScene()
		m := w.addLayers(sc)
		first, retry, replay := m[delivery.First], m[delivery.Retry], m[delivery.Replay]
		w.wantTurns(share(&sc.hook, n), []formsvc.Delivery{first[1], first[0], retry[0], retry[1], replay[1], replay[0]})
	}
}

func testClaimLateFirst(w *world) {
	for _, n := range []int{1, 3, 5, 100} {
		sc := w.addScene()
		m := w.addLayers(sc)
		first, retry, replay := m[delivery.First], m[delivery.Retry], m[delivery.Replay]
		w.wantTurns(late(&sc.hook, n), []formsvc.Delivery{retry[0], retry[1], replay[1], replay[0], first[1], first[0]})
	}
}

func (w *world) wantClaimedOnce(stores []Store, hooks []formsvc.Webhook, want int) {
	w.Helper()
	var (
		mu      sync.Mutex
		claimed = make(map[string]int)
		workers sync.WaitGroup
	)
	drain := func(store Store, random *rand.Rand) {
		for {
			req := delivery.ClaimRequest{Now: nextDay(), Lease: lease}
			for i := range hooks {
				s := share(&hooks[i], 1+random.IntN(3))
				s.LateFirst = random.IntN(2) == 0
				req.Shares = append(req.Shares, s)
			}
			random.Shuffle(len(hooks), func(i, j int) { req.Shares[i], req.Shares[j] = req.Shares[j], req.Shares[i] })
			claims, err := store.Claim(w.ctx, req)
			w.check("Claim", err)
			mu.Lock()
			twice := false
			for _, c := range claims {
				claimed[c.ID]++
				twice = twice || claimed[c.ID] > 1
			}
			mu.Unlock()
			if len(claims) == 0 || twice {
				return
			}
		}
	}
	for i := range 16 {
		workers.Go(func() { drain(stores[i%len(stores)], rand.New(rand.NewPCG(22, uint64(i)))) })
	}
	workers.Wait()
	drain(stores[0], rand.New(rand.NewPCG(23, 0))) // workers skip deliveries that another worker is claiming
	for id, n := range claimed {
		if n != 1 {
			w.Errorf("delivery %s was claimed %d times within its lease", id, n)
		}
	}
	if n := len(claimed); n != want {
		w.Errorf("%d of %d deliveries were claimed", n, want)
	}
}

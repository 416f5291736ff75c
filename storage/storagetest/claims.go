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

func claimTests() []test {
	return []test{
		{"claim has every field", testClaimContent},
		{"delivery is due when its event was", testClaimDue},
		{"leased delivery is not claimed", testLease},
		{"claims fill each share", testClaimShares},
		{"unknown endpoints get nothing", testClaimNobody},
		{"claimed deliveries show since when they are sent", testSendingSince},
		{"kinds are claimed in order", testClaimKinds},
		{"late deliveries can go first", testClaimLateFirst},
		{"deliveries not yet due block no other", testClaimSkips},
		{"oldest of a kind is claimed first", testClaimOldest},
		{"deleted and disabled webhooks get nothing", testClaimGone},
		{"each delivery is claimed once", testClaimRace},
	}
}

func testClaimContent(w *world) {
	sc := w.addScene()
	r := w.newResponse(&sc.campaign)
	e := w.newEvent(&r)
	e.Payload = []byte(strings.Repeat("é\x00", 1_000))
	w.must("CreateResponse", w.create(r, e))
	want := delivery.Claim{
		ID: string(formsvc.DeliveryID(e.ID, sc.hook.ID)), EventID: string(e.ID), Event: string(e.Type),
		Endpoint: string(sc.hook.ID), Size: 3_000,
	}
	now := nextDay()
	for _, kind := range []delivery.Kind{delivery.First, delivery.Retry, delivery.Replay} {
		got := w.claimOne(now)
		want.Lease, want.Kind = got.Lease, kind
		w.same("claim", got, want)
		d := w.delivery(&e, &sc.hook)
		if d.State != formsvc.DeliveryPending || d.Attempts != want.Attempts || !d.DueAt.Equal(now.Add(lease)) {
			w.Errorf("during an attempt the delivery is %+v; want it pending, with %d attempts, due when the lease ends", d, want.Attempts)
		}
		o := outcome(&got, delivery.Postponed, now)
		if kind != delivery.First {
			o.Result = delivery.Failed
		}
		if !w.finish(o) {
			w.Errorf("the outcome of kind %d was not accepted", kind)
		}
		want.Attempts++
		if kind == delivery.Retry {
			_, err := w.store.Redeliver(w.ctx, deliveryKey(&d), now, nil)
			w.must("Redeliver", err)
		}
	}
}

func testClaimDue(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	if claims := w.claim(e.CreatedAt.Add(-time.Microsecond)); len(claims) != 0 {
		w.Errorf("claimed a delivery before it is due")
	}
	w.claimOne(e.CreatedAt.In(time.FixedZone("", -3600)))
}

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

// testSendingSince claims a delivery of each kind and finishes it with each result.
func testSendingSince(w *world) {
	for _, kind := range []delivery.Kind{delivery.First, delivery.Retry, delivery.Replay} {
		for _, result := range results() {
			for _, take := range []func(*formsvc.Webhook, int) delivery.Share{share, late} {
				w.wantSendingSince(kind, result, take)
			}
		}
	}
}

func (w *world) wantSendingSince(kind delivery.Kind, result delivery.Result, room func(*formsvc.Webhook, int) delivery.Share) {
	w.Helper()
	sc := w.addScene()
	want := w.addMix(sc, nextDay(), map[delivery.Kind][]time.Duration{kind: {0, time.Hour}})[kind]
	w.same("waiting", w.deliveries(&sc.hook), want)
	w.take(nextDay().Add(time.Second), room(&sc.hook, 1)) // by a worker that dies
	now := nextDay().Add(time.Second + lease)
	claims := w.take(now, room(&sc.hook, 2))
	if len(claims) != 1 {
		w.Fatalf("%d claims, want 1", len(claims))
	}
	want[0].SendingSince, want[0].DueAt = now, now.Add(lease)
	w.same("under way", w.deliveries(&sc.hook), want)
	one, err := w.store.Delivery(w.ctx, deliveryKey(&want[0]))
	w.must("Delivery", err)
	w.same("one that is under way", one, want[0])
	if !w.finish(outcome(&claims[0], result, now)) {
		w.Errorf("result %d was not accepted", result)
	}
	for _, d := range w.deliveries(&sc.hook) {
		if !d.SendingSince.IsZero() {
			w.Errorf("kind %d, result %d: still sending since %v", kind, result, d.SendingSince)
		}
	}
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

// byEndpoint counts claims, in the order of the webhooks.
func byEndpoint(claims []delivery.Claim, hooks []formsvc.Webhook) []int {
	counts := make([]int, len(hooks))
	for _, c := range claims {
		i := slices.IndexFunc(hooks, func(h formsvc.Webhook) bool { return string(h.ID) == c.Endpoint })
		counts[i]++
	}
	return counts
}

// handBack releases claims at once.
func (w *world) handBack(claims []delivery.Claim, due time.Time) {
	w.Helper()
	for i := range claims {
		if !w.finish(outcome(&claims[i], delivery.Released, due)) {
			w.Errorf("the release of a claim was not accepted")
		}
	}
}

func testClaimShares(w *world) {
	c, hooks := w.endpoints(3)
	other := w.addScene()
	hooks = append(hooks, other.hook)
	for range 10 {
		w.addResponse(&c)
	}
	for range 4 {
		w.addResponse(&other.campaign)
	}
	for _, x := range []struct{ n, want []int }{
		{[]int{}, []int{0, 0, 0, 0}},
		{[]int{0, 0, 0, 0}, []int{0, 0, 0, 0}},
		{[]int{-1, 1, -1, 0}, []int{0, 1, 0, 0}},
		{[]int{1, 1, 1, 1}, []int{1, 1, 1, 1}},
		{[]int{0, 3, 0, 9}, []int{0, 3, 0, 4}},
		{[]int{2, 10, 11, 0}, []int{2, 10, 10, 0}},
		{[]int{1_000, 1_000, 1_000, 1_000}, []int{10, 10, 10, 4}},
		{[]int{7}, []int{7, 0, 0, 0}}, // the other endpoints aren't asked for
	} {
		var shares []delivery.Share
		for i, n := range x.n {
			shares = append(shares, share(&hooks[i], n))
		}
		slices.Reverse(shares)
		claims := w.take(nextDay(), shares...)
		w.same("claims by endpoint", byEndpoint(claims, hooks), x.want)
		again := w.take(nextDay(), shares...) // the same number again of the rest
		for i := range x.want {
			rest := []int{10, 10, 10, 4}[i] - x.want[i]
			if n := byEndpoint(again, hooks)[i]; n != min(x.want[i], rest) {
				w.Errorf("share %v of endpoint %d, again: %d claims, %d were left", x.n, i, n, rest)
			}
		}
		w.handBack(slices.Concat(claims, again), nextDay())
	}
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

// testClaimSkips postpones the deliveries that would go first.
func testClaimSkips(w *world) {
	const later, due = time.Hour, -time.Minute
	for _, kind := range []delivery.Kind{delivery.First, delivery.Retry, delivery.Replay} {
		for _, lateFirst := range []bool{false, true} {
			sc := w.addScene()
			all := map[delivery.Kind][]time.Duration{
				delivery.First: {later, later}, delivery.Retry: {later, later}, delivery.Replay: {later, later},
			}
			all[kind] = []time.Duration{later, due, later}
			m := w.addMix(sc, nextDay(), all)
			room := share(&sc.hook, 1)
			room.LateFirst = lateFirst
			w.wantTurns(room, m[kind][1:2])
		}
	}
}

func testClaimOldest(w *world) {
	for _, kind := range []delivery.Kind{delivery.First, delivery.Retry, delivery.Replay} {
		sc := w.addScene()
		due := []int{5, 1, 4, 2, 3, 0}
		var after []time.Duration
		for _, minutes := range due {
			after = append(after, time.Duration(minutes-10)*time.Minute)
		}
		m := w.addMix(sc, nextDay(), map[delivery.Kind][]time.Duration{kind: after})
		want := make([]formsvc.Delivery, len(due))
		for i, minutes := range due {
			want[minutes] = m[kind][i]
		}
		w.wantTurns(share(&sc.hook, 2), want)
	}
}

func testClaimGone(w *world) {
	due := map[delivery.Kind][]time.Duration{delivery.First: {0}, delivery.Retry: {0}, delivery.Replay: {0}}
	disabled, deleted := w.addScene(), w.addScene()
	m := w.addMix(disabled, nextDay(), due)
	w.addMix(deleted, nextDay(), due)
	w.wantReady("before", nextDay(), &disabled.hook, &deleted.hook)
	w.change(&disabled.hook, disable)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&deleted.hook), formsvc.Change{}))
	if claims := w.take(nextDay(), share(&deleted.hook, 10), late(&disabled.hook, 0)); len(claims) != 0 {
		w.Errorf("%d claims of a deleted webhook", len(claims))
	}
	w.wantTurns(share(&disabled.hook, 10), m[delivery.Replay])
	w.wantTurns(late(&disabled.hook, 10), nil)
	w.change(&disabled.hook, enable)
	w.wantTurns(share(&disabled.hook, 10), append(m[delivery.First], m[delivery.Retry]...))
}

// testClaimRace has many workers claim concurrently until nothing is left.
func testClaimRace(w *world) {
	c, hooks := w.endpoints(8)
	const events = 50
	for range events {
		w.addResponse(&c)
	}
	w.wantClaimedOnce([]Store{w.store}, hooks, events*len(hooks))
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

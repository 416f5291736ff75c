package storagetest

import (
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func claimTests() []test {
	return []test{
		{"what a claim says", testClaimContent},
		{"due when the event was", testClaimDue},
		{"nobody else while the lease lasts", testLease},
		{"limits", testClaimLimits},
		{"the oldest of an endpoint first", testClaimOldest},
		{"endpoints in turn", testClaimRotation},
		{"room is shared fairly", testClaimFairness},
		{"one delivery, one claim", testClaimRace},
	}
}

func testClaimContent(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	got := w.claimOne(request(nextDay()))
	want := delivery.Claim{
		ID: string(formsvc.DeliveryID(e.ID, sc.hook.ID)), Lease: got.Lease, EventID: string(e.ID), Event: string(e.Type),
		Endpoint: delivery.Endpoint{
			ID: string(sc.hook.ID), Account: string(sc.account.ID), URL: sc.hook.URL, Secret: sc.hook.Secret,
		},
	}
	w.same("claim", got, want)
	list := w.deliveries(&sc.hook)
	if len(list) != 1 || list[0].State != formsvc.DeliveryPending || list[0].Attempts != 0 || !list[0].UpdatedAt.IsZero() {
		w.Errorf("deliveries during the first attempt: %+v; want it pending, without attempts", list)
	}
}

func testClaimDue(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	if claims := w.claim(request(e.CreatedAt.Add(-time.Microsecond))); len(claims) != 0 {
		w.Errorf("claimed a delivery before it is due")
	}
	w.claimOne(request(e.CreatedAt.In(time.FixedZone("", -3600))))
}

func testLease(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	now := nextDay()
	var last int64
	for range 3 {
		claim := w.claimOne(request(now))
		if last != 0 && claim.Lease <= last {
			w.Errorf("lease %d after %d, want it to grow", claim.Lease, last)
		}
		if claim.Attempts != 0 {
			w.Errorf("%d attempts, want none: no result is known", claim.Attempts)
		}
		last = claim.Lease
		for _, later := range []time.Duration{0, time.Second, time.Minute - time.Microsecond} {
			if claims := w.claim(request(now.Add(later))); len(claims) != 0 {
				w.Errorf("claimed again %v into a lease of a minute", later)
			}
		}
		now = now.Add(time.Minute)
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
func byEndpoint(claims map[string]delivery.Claim, hooks []formsvc.Webhook) []int {
	counts := make([]int, len(hooks))
	for _, c := range claims {
		i := slices.IndexFunc(hooks, func(h formsvc.Webhook) bool { return string(h.ID) == c.Endpoint.ID })
		counts[i]++
	}
	return counts
}

// handBack releases claims at once.
func (w *world) handBack(claims map[string]delivery.Claim, due time.Time) {
	w.Helper()
	for _, c := range claims {
		if !w.finish(delivery.Outcome{ID: c.ID, Lease: c.Lease, Result: delivery.Released, Due: due}) {
			w.Errorf("the release of a claim was not accepted")
		}
	}
}

func testClaimLimits(w *world) {
	c, hooks := w.endpoints(3)
	for range 10 {
		w.addResponse(&c)
	}
	first, second := string(hooks[0].ID), string(hooks[1].ID)
	for _, x := range []struct {
		limit, perEndpoint int
		busy               map[string]int
		want               []int // nil: any that make up the limit
	}{
		{limit: 0, perEndpoint: 5, want: []int{0, 0, 0}},
		{limit: 5, perEndpoint: 0, want: []int{0, 0, 0}},
		{limit: 4, perEndpoint: 100},
		{limit: 1, perEndpoint: 1},
		{limit: 1000, perEndpoint: 1000, want: []int{10, 10, 10}},
		{limit: 1000, perEndpoint: 3, want: []int{3, 3, 3}},
		{limit: 1000, perEndpoint: 3, busy: map[string]int{first: 1, second: 3, "other": 9}, want: []int{2, 0, 3}},
		{limit: 1000, perEndpoint: 3, busy: map[string]int{first: 7, string(hooks[2].ID): 2}, want: []int{0, 3, 1}},
		{limit: 1000, perEndpoint: 12, busy: map[string]int{second: 4}, want: []int{10, 8, 10}},
	} {
		req := request(nextDay())
		req.Limit, req.PerEndpoint, req.Busy = x.limit, x.perEndpoint, x.busy
		claims := w.claim(req)
		if x.want == nil && len(claims) != x.limit {
			w.Errorf("limit %d: %d claims", x.limit, len(claims))
		}
		if x.want != nil {
			w.same("claims by endpoint", byEndpoint(claims, hooks), x.want)
		}
		w.handBack(claims, nextDay())
	}
}

func testClaimOldest(w *world) {
	sc := w.addScene()
	due := []int{5, 1, 4, 2, 3, 0}
	want := make([]string, len(due))
	for _, minutes := range due {
		r := w.newResponse(&sc.campaign)
		e := w.newEvent(&r)
		e.CreatedAt = start().Add(time.Duration(minutes) * time.Minute)
		w.must("CreateResponse", w.create(r, e))
		want[minutes] = string(e.ID)
	}
	for _, event := range want {
		req := request(nextDay())
		req.PerEndpoint = 1
		if got := w.claimOne(req); got.EventID != event {
			w.Errorf("claimed event %s, want %s, which has been due longer", got.EventID, event)
		}
	}
}

func testClaimRotation(w *world) {
	c, hooks := w.endpoints(5)
	for range 20 {
		w.addResponse(&c)
	}
	after := ""
	for i := range 12 { // one at a time
		req := request(nextDay())
		req.Limit, req.After = 1, after
		claim := w.claimOne(req)
		if want := string(hooks[i%5].ID); claim.Endpoint.ID != want {
			w.Fatalf("after endpoint %q comes %s, want %s", after, claim.Endpoint.ID, want)
		}
		after = claim.Endpoint.ID
	}
	gone := hooks[2].ID
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&hooks[2])))
	hooks = slices.Delete(hooks, 2, 3)
	for _, x := range []struct {
		after formsvc.ID
		want  []int
	}{
		{"", []int{1, 1, 0, 0}}, {hooks[0].ID, []int{0, 1, 1, 0}}, {hooks[2].ID, []int{1, 0, 0, 1}},
		{hooks[3].ID, []int{1, 1, 0, 0}}, {gone, []int{0, 0, 1, 1}},
		{formsvc.FloorID(start()), []int{1, 1, 0, 0}}, {formsvc.FloorID(nextDay()), []int{1, 1, 0, 0}},
	} {
		req := request(nextDay())
		req.Limit, req.After = 2, string(x.after)
		claims := w.claim(req)
		w.same("claims by endpoint after "+req.After, byEndpoint(claims, hooks), x.want)
		w.handBack(claims, start())
	}
}

// testClaimFairness has one endpoint with little and others with much to do:
// who has enough gets as much as any other, give or take one.
func testClaimFairness(w *world) {
	c, hooks := w.endpoints(4)
	little := w.newWebhook(c.AccountID)
	little.CampaignID = c.ID
	second := w.addCampaign(c.AccountID)
	w.must("CreateWebhook", w.store.CreateWebhook(w.ctx, little, formsvc.MaxWebhooks))
	w.addResponse(&c)
	for range 30 {
		w.addResponse(&second)
	}
	hooks = append(hooks, little)
	for _, x := range []struct {
		limit       int
		most, least int // of an endpoint with much to do
	}{
		{5, 1, 1}, {7, 2, 1}, {9, 2, 2}, {11, 3, 2}, {41, 10, 10}, {101, 25, 25},
	} {
		req := request(nextDay())
		req.Limit = x.limit
		claims := w.claim(req)
		counts := byEndpoint(claims, hooks)
		much := counts[:4]
		if len(claims) != x.limit || counts[4] != 1 || slices.Max(much) > x.most || slices.Min(much) < x.least {
			w.Errorf("limit %d: claims by endpoint %v, want %d to %d and 1 of the last", x.limit, counts, x.least, x.most)
		}
		w.handBack(claims, start())
	}
}

// testClaimRace has many claim at once until nothing is left.
func testClaimRace(w *world) {
	c, hooks := w.endpoints(8)
	const events = 50
	for range events {
		w.addResponse(&c)
	}
	w.wantClaimedOnce([]Store{w.store}, events*len(hooks))
}

func (w *world) wantClaimedOnce(stores []Store, want int) {
	w.Helper()
	var (
		mu      sync.Mutex
		claimed = make(map[string]int)
		workers sync.WaitGroup
	)
	drain := func(store Store) {
		after := ""
		for {
			req := request(nextDay())
			req.Limit, req.PerEndpoint, req.After = 7, 3, after
			claims, err := store.Claim(w.ctx, req)
			w.check("Claim", err)
			mu.Lock()
			twice := false
			for _, c := range claims {
				claimed[c.ID]++
				twice = twice || claimed[c.ID] > 1
				after = c.Endpoint.ID
			}
			mu.Unlock()
			if len(claims) == 0 || twice {
				return
			}
		}
	}
	for i := range 16 {
		workers.Go(func() { drain(stores[i%len(stores)]) })
	}
	workers.Wait()
	drain(stores[0]) // what a worker did not wait for while another was at it
	for id, n := range claimed {
		if n != 1 {
			w.Errorf("delivery %s was claimed %d times within its lease", id, n)
		}
	}
	if n := len(claimed); n != want {
		w.Errorf("%d of %d deliveries were claimed", n, want)
	}
}

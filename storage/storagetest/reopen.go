package storagetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func durabilityTests() []test {
	return []test{
		{"everything is there after Close", testSurvivesClose},
		{"claims are there after Close", testClaimsSurviveClose},
		{"what was acknowledged during Close is there", testAcknowledgedSurvives},
	}
}

func handleTests() []test {
	return []test{
		{"one sees what the other wrote", testHandlesSee},
		{"no update is lost", testHandlesIncrement},
		{"limits and unique values hold", testHandlesRace},
		{"one delivery, one claim", testHandlesClaim},
		{"a lost lease finishes nothing", testHandlesFence},
	}
}

// closeAndReopen has the world go on with a second store over the same data.
func (w *world) closeAndReopen() {
	w.Helper()
	w.closeStore()
	w.store = w.reopen(w.T, w.store)
}

func testSurvivesClose(w *world) {
	sc := w.addScene()
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, w.fullCampaign(sc.account.ID)))
	key := w.addKey(sc.account.ID)
	w.must("RevokeKey", w.store.RevokeKey(w.ctx, sc.account.ID, key.ID, nextDay()))
	r, _ := w.addResponse(&sc.campaign)
	w.addResponse(&sc.campaign)
	w.must("update", incrementCampaign(w, w.store, &sc.campaign))
	w.must("update", incrementResponse(w, w.store, &r))
	gone := w.addWebhook(sc.account.ID)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&gone)))
	before := w.snapshot()
	w.closeAndReopen()
	w.unchanged("reopening", &before)
	r2 := w.newResponse(&sc.campaign)
	w.must("CreateResponse", w.store.CreateResponse(w.ctx, r2, 2, formsvc.Change{Events: []formsvc.Event{w.newEvent(&r2)}}))
	sc.campaign = w.campaigns(sc.account.ID)[0]
	if n := len(w.deliveries(&sc.hook)); sc.campaign.ResponseCount != 3 || n != 4 {
		w.Errorf("after reopening and one more: %d responses counted, %d deliveries; want 3 and 4", sc.campaign.ResponseCount, n)
	}
}

func testClaimsSurviveClose(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	w.addResponse(&sc.campaign)
	req := request(nextDay())
	req.Limit = 1
	retried, held := w.claimOne(req), w.claimOne(req)
	due := nextDay().Add(30 * time.Second)
	w.finish(delivery.Outcome{
		ID: retried.ID, Lease: retried.Lease, Result: delivery.Retry, Due: due, Attempt: attempt(1, nextDay()),
	})
	before := w.snapshot()
	w.closeAndReopen()
	w.unchanged("reopening", &before)
	if claims := w.claim(request(due.Add(-time.Microsecond))); len(claims) != 0 {
		w.Errorf("reopening made %d deliveries due", len(claims))
	}
	again := w.claimOne(request(due))
	if again.ID != retried.ID || again.Attempts != 1 || again.Lease <= retried.Lease {
		w.Errorf("claimed %+v, want the second attempt of %s with a lease over %d", again, retried.ID, retried.Lease)
	}
	if !w.finish(delivery.Outcome{ID: held.ID, Lease: held.Lease, Result: delivery.Delivered, Attempt: attempt(1, nextDay())}) {
		w.Errorf("reopening lost a claim")
	}
}

func testAcknowledgedSurvives(w *world) {
	sc := w.addScene()
	var (
		mu    sync.Mutex
		acked []formsvc.Response
		all   sync.WaitGroup
		first sync.WaitGroup // done when every writer has written something
	)
	defer all.Wait()
	for range writers {
		first.Add(1)
		all.Go(func() {
			begun := sync.OnceFunc(first.Done)
			defer begun()
			for range writes {
				r := w.newResponse(&sc.campaign)
				if err := w.create(r, w.newEvent(&r)); err != nil {
					if !errors.Is(err, formsvc.ErrStoreClosed) {
						w.Errorf("CreateResponse during Close: %v", err)
					}
					return
				}
				mu.Lock()
				acked = append(acked, r)
				mu.Unlock()
				begun()
			}
		})
	}
	first.Wait()
	w.must("Close", w.store.Close())
	all.Wait()
	w.store = w.reopen(w.T, w.store)
	for i := range acked {
		got, err := w.store.Response(w.ctx, keyOf(&acked[i]))
		w.must("Response that was acknowledged", err)
		w.same("response", got, acked[i])
	}
	w.wantCount(&sc.campaign, &sc.hook, int64(len(acked)))
}

func testHandlesSee(w *world) {
	first, second := w.store, w.reopen(w.T, w.store)
	for i := range 6 {
		w.store = []Store{first, second}[i%2]
		sc := w.addScene()
		r, _ := w.addResponse(&sc.campaign)
		w.must("update", incrementResponse(w, w.store, &r))
		before := w.snapshot()
		w.store = []Store{second, first}[i%2]
		w.unchanged("a write through the other store", &before)
	}
}

func testHandlesIncrement(w *world) {
	stores := []Store{w.store, w.reopen(w.T, w.store)}
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	var turn atomic.Int64
	w.increment(func() error { return incrementResponse(w, stores[turn.Add(1)%2], &r) })
	w.increment(func() error { return incrementCampaign(w, stores[turn.Add(1)%2], &sc.campaign) })
	for _, store := range stores {
		w.wantResponseIncrements(store, &r, &sc.hook)
		w.wantCampaignIncrements(store, &sc.campaign)
	}
}

func testHandlesRace(w *world) {
	stores := []Store{w.store, w.reopen(w.T, w.store)}
	var turn atomic.Int64
	a := w.addAccount()
	const limit = 5
	if won := w.race(24, formsvc.ErrLimit, func() error {
		return stores[turn.Add(1)%2].CreateWebhook(w.ctx, w.newWebhook(a.ID), limit)
	}); won != limit {
		w.Errorf("%d webhooks under a limit of %d", won, limit)
	}
	c := w.addCampaign(a.ID)
	taken := w.newResponse(&c).Reference
	if won := w.race(16, formsvc.ErrConflict, func() error {
		r := w.newResponse(&c)
		r.Reference = taken
		return stores[turn.Add(1)%2].CreateResponse(w.ctx, r, 1, formsvc.Change{})
	}); won != 1 {
		w.Errorf("%d responses with one reference", won)
	}
}

func testHandlesClaim(w *world) {
	stores := []Store{w.store, w.reopen(w.T, w.store)}
	c, hooks := w.endpoints(8)
	const events = 50
	for range events {
		w.addResponse(&c)
	}
	w.wantClaimedOnce(stores, events*len(hooks))
}

func testHandlesFence(w *world) {
	first, second := w.store, w.reopen(w.T, w.store)
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	lost := w.claimOne(request(nextDay()))
	w.store = second
	held := w.claimOne(request(nextDay().Add(time.Minute)))
	w.store = first
	o := delivery.Outcome{ID: lost.ID, Lease: lost.Lease, Result: delivery.Delivered, Attempt: attempt(1, nextDay())}
	if w.finish(o) {
		w.Errorf("the outcome of a lost lease was accepted")
	}
	w.store = second
	o.Lease = held.Lease
	if !w.finish(o) {
		w.Errorf("the outcome of the lease that is held was not accepted")
	}
}

package storagetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func durabilityTests() []test {
	return []test{
		{"records survive Close", testSurvivesClose},
		{"claims survive Close", testClaimsSurviveClose},
		{"notices and digests survive Close", testNoticesSurviveClose},
		{"feed positions survive Close", testFeedSurvivesClose},
		{"files, bars and deletions survive Close", testFilesSurviveClose},
		{"acknowledged writes survive Close", testAcknowledgedSurvives},
		{"idempotency records survive Close", testRecordsSurviveClose},
		{"links and sessions survive Close", testSessionsSurviveClose},
		{"identity survives Close", testIdentitySurvivesClose},
	}
}

func handleTests() []test {
	return []test{
		{"writes are visible through both", testHandlesSee},
		{"no update is lost", testHandlesIncrement},
		{"limits and unique values hold", testHandlesRace},
		{"each delivery is claimed once", testHandlesClaim},
		{"lost lease can't finish", testHandlesFence},
		{"each notice is leased once", testHandlesNotices},
		{"events are read through both", testHandlesFeed},
		{"changes of a response come in order", testHandlesFeedOrder},
		{"events are raised through both", testHandlesEvents},
		{"redelivery is claimed through the other", testHandlesRedeliver},
		{"identifier is used or barred", testHandlesFileOrBar},
		{"no file is left without a response", testHandlesDelete},
		{"one of many concurrent transactions wins", testHandlesKey},
		{"quota grants don't overlap", testHandlesQuota},
		{"link signs in once", testHandlesRedeem},
		{"both have the same identity", testHandlesIdentity},
	}
}

// closeAndReopen replaces the world's store by a second one over the same data.
func (w *world) closeAndReopen() {
	w.Helper()
	w.closeStore()
	w.store = w.reopen(w.T, w.store)
}

func testSurvivesClose(w *world) {
	sc := w.addScene()
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, w.fullCampaign(sc.account.ID), formsvc.Change{}))
	key := w.addKey(sc.account.ID)
	w.must("RevokeKey", w.store.RevokeKey(w.ctx, sc.account.ID, key.ID, nextDay(), formsvc.Change{}))
	w.must("UseKeys", w.store.UseKeys(w.ctx, []formsvc.KeyUse{{AccountID: sc.account.ID, ID: key.ID, At: nextDay()}}))
	r, _ := w.addResponse(&sc.campaign)
	w.addResponse(&sc.campaign)
	w.addComment(&r)
	w.addSignature(&r)
	w.must("update", incrementCampaign(w, w.store, &sc.campaign))
	w.must("update", incrementResponse(w, w.store, &r))
	w.must("update", incrementWebhook(w, w.store, &sc.hook))
	w.must("update", incrementAccount(w, w.store, sc.account.ID))
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	_, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), w.newTestEvent(sc.account.ID), nil)
	w.must("CreateTest", err)
	gone := w.addWebhook(sc.account.ID)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&gone), formsvc.Change{}))
	before := w.snapshot()
	w.closeAndReopen()
	w.unchanged("reopening", &before)
	r2 := w.newResponse(&sc.campaign)
	w.must("CreateResponse", w.store.CreateResponse(w.ctx, r2, 2, formsvc.Change{Events: []formsvc.Event{w.newEvent(&r2)}}))
	sc.campaign = w.campaigns(sc.account.ID)[0]
	if n := len(w.deliveries(&sc.hook)); sc.campaign.ResponseCount != 3 || n != 5 {
		w.Errorf("after reopening and one more: %d responses counted, %d deliveries; want 3 and 5", sc.campaign.ResponseCount, n)
	}
}

func testClaimsSurviveClose(w *world) {
	sc := w.addScene()
	now := nextDay()
	w.addResponse(&sc.campaign)
	w.attend(&sc.hook, now, delivery.Delivered)
	d := w.deliveries(&sc.hook)[0]
	w.redeliver(&formsvc.Event{ID: d.EventID}, &sc.hook, now.Add(time.Hour))
	w.addResponse(&sc.campaign)
	w.addResponse(&sc.campaign)
	held := w.take(now, share(&sc.hook, 2))
	retried := held[0]
	due := now.Add(30 * time.Second)
	o := outcome(&retried, delivery.Postponed, now)
	o.Due = due
	w.finish(o)
	before := w.snapshot()
	w.closeAndReopen()
	w.unchanged("reopening", &before)
	if claims := w.claim(due.Add(-time.Microsecond)); len(claims) != 0 {
		w.Errorf("reopening made %d deliveries due", len(claims))
	}
	again := w.claimOne(due)
	if again.ID != retried.ID || again.Attempts != 1 || again.Kind != delivery.Retry || again.Lease <= retried.Lease {
		w.Errorf("claimed %+v, want the second attempt of %s with a lease over %d", again, retried.ID, retried.Lease)
	}
	if !w.finish(outcome(&held[1], delivery.Delivered, now)) {
		w.Errorf("reopening lost a claim")
	}
	w.finish(outcome(&again, delivery.Delivered, now))
	if replay := w.claimOne(now.Add(time.Hour)); replay.ID != string(d.ID) || replay.Kind != delivery.Replay || replay.Attempts != 1 {
		w.Errorf("claimed %+v, want the replay of %s", replay, d.ID)
	}
}

func testNoticesSurviveClose(w *world) {
	ids := w.addFailures(4)
	now := nextDay().Add(time.Hour)
	w.failures(now, now.Add(lease), 2)
	w.must("Noted", w.store.Noted(w.ctx, ids[:1]))
	digests := w.digests(now, 2)
	if len(digests) != 2 {
		w.Fatalf("%d digests, want 2", len(digests))
	}
	w.must("FinishDigest", w.store.FinishDigest(w.ctx, digests[0], now))
	before := w.snapshot()
	w.closeAndReopen()
	w.unchanged("reopening", &before)
	w.same("not leased", deliveriesOf(w.failures(now, now.Add(lease), 1)), ids[2:3])
	w.same("leases ended", deliveriesOf(w.failures(now.Add(lease), now.Add(2*lease), 2)), ids[1:3])
	w.wantDigests(now.Add(lease - time.Microsecond))
	w.must("FinishDigest", w.store.FinishDigest(w.ctx, digests[1], now))
	w.wantDigests(now.Add(1000 * time.Hour))
}

func testFeedSurvivesClose(w *world) {
	sc := w.addScene()
	events := w.addEvents(&sc.campaign, webhook.EventTypes()...)
	q := formsvc.EventQuery{AccountID: sc.account.ID}
	_, q.After = w.feed(formsvc.EventQuery{AccountID: sc.account.ID, Limit: 1}, &events[2])
	for range 2 {
		w.closeAndReopen()
		events = append(events, w.addEvents(&sc.campaign, webhook.EventTypes()...)...)
	}
	got, _ := w.feed(q, &events[len(events)-1])
	w.same("events after the position", got, events[3:])
}

func testFilesSurviveClose(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	gone, _ := w.addResponse(&sc.campaign)
	w.addFile(&r)
	lost := w.addFile(&gone)
	_, err := w.store.DeleteResponse(w.ctx, keyOf(&gone), nil)
	w.must("DeleteResponse", err)
	barred := w.newFile(&r)
	w.wantBarred("a free one", []formsvc.ID{barred.ID}, []formsvc.ID{barred.ID})
	before := w.snapshot()
	w.closeAndReopen()
	w.unchanged("reopening", &before)
	w.wantGone(&gone, lost)
	w.wantResponses(&sc.campaign, r)
	w.wantError("CreateFile with a barred ID", w.createFile(barred), formsvc.ErrConflict)
}

func testAcknowledgedSurvives(w *world) {
	sc := w.addScene()
	var (
		mu    sync.Mutex
		acked []formsvc.Response
		all   sync.WaitGroup
		first sync.WaitGroup // done once every writer has written
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
	w.increment(func() error { return incrementWebhook(w, stores[turn.Add(1)%2], &sc.hook) })
	w.increment(func() error { return incrementAccount(w, stores[turn.Add(1)%2], sc.account.ID) })
	for _, store := range stores {
		w.wantWebhookIncrements(store, &sc.hook)
		w.wantAccountIncrements(store, sc.account.ID)
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
		_, _, err := stores[turn.Add(1)%2].CreateWebhook(w.ctx, w.newWebhook(a.ID), limit, nil)
		return err
	}); won != limit {
		w.Errorf("%d webhooks under a limit of %d", won, limit)
	}
	w.subscribeTogether(stores, limit)
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
	w.wantClaimedOnce(stores, hooks, events*len(hooks))
}

func testHandlesFence(w *world) {
	first, second := w.store, w.reopen(w.T, w.store)
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	lost := w.claimOne(nextDay())
	w.store = second
	held := w.claimOne(nextDay().Add(lease))
	w.store = first
	if w.finish(outcome(&lost, delivery.Delivered, nextDay())) {
		w.Errorf("the outcome of a lost lease was accepted")
	}
	w.store = second
	if !w.finish(outcome(&held, delivery.Delivered, nextDay())) {
		w.Errorf("the outcome of the lease that is held was not accepted")
	}
}

func testHandlesNotices(w *world) {
	stores := []Store{w.store, w.reopen(w.T, w.store)}
	ids := w.addFailures(60)
	w.wantLeasedOnce(stores, ids)
	now := nextDay().Add(time.Hour)
	digests := w.digests(now, 1)
	w.store = stores[1]
	digests = append(digests, w.digests(now, 10)...)
	if len(digests) != 2 || digests[0].WebhookID == digests[1].WebhookID {
		w.Fatalf("digests through two stores: %+v, want one of each webhook", digests)
	}
	w.must("FinishDigest through the other store", w.store.FinishDigest(w.ctx, digests[0], now))
	w.must("Noted through the other store", w.store.Noted(w.ctx, ids))
	w.store = stores[0]
	w.wantFailures(now.Add(1000*time.Hour), 0)
}

func testHandlesFeed(w *world) {
	w.wantFollowed([]Store{w.store, w.reopen(w.T, w.store)})
}

func testHandlesFeedOrder(w *world) {
	w.wantChangesInOrder([]Store{w.store, w.reopen(w.T, w.store)})
}

func testHandlesRedeliver(w *world) {
	first, second := w.store, w.reopen(w.T, w.store)
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	w.store = second
	w.redeliver(&e, &sc.hook, nextDay())
	w.store = first
	claim := w.claimOne(nextDay())
	w.store = second
	_, err := w.store.Redeliver(w.ctx, formsvc.DeliveryKey{AccountID: sc.account.ID, ID: formsvc.ID(claim.ID)}, nextDay(), nil)
	w.wantError("Redeliver while the other store's claim lasts", err, formsvc.ErrConflict)
	if claim.Kind != delivery.Replay || !w.finish(outcome(&claim, delivery.Delivered, nextDay())) {
		w.Errorf("the claim %+v of the other store is no replay, or was not accepted", claim)
	}
}

func testHandlesFileOrBar(w *world) { w.wantFileOrBar([]Store{w.store, w.reopen(w.T, w.store)}) }

func testHandlesDelete(w *world) { w.wantNoStrayFiles([]Store{w.store, w.reopen(w.T, w.store)}) }

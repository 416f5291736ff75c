package storagetest

import (
	"errors"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

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

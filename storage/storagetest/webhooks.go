package storagetest

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func webhookTests() []test {
	return []test{
		{"the limit is the account's", testWebhookLimit},
		{"the limit holds when many are made at once", testWebhookLimitRace},
		{"a deleted one gets nothing more", testDeleteWebhook},
		{"deleted while it is served", testDeleteClaimed},
	}
}

func testWebhookLimit(w *world) {
	mine, other := w.addAccount(), w.addAccount()
	var hooks []formsvc.Webhook
	for range 3 {
		hook := w.newWebhook(mine.ID)
		hook.Disabled = len(hooks) == 1 // counts, too
		w.must("CreateWebhook", w.store.CreateWebhook(w.ctx, hook, 3))
		hooks = append(hooks, hook)
	}
	for _, limit := range []int{3, 2, 0} {
		err := w.store.CreateWebhook(w.ctx, w.newWebhook(mine.ID), limit)
		w.wantError("CreateWebhook over the limit", err, formsvc.ErrLimit)
	}
	w.must("CreateWebhook in another account", w.store.CreateWebhook(w.ctx, w.newWebhook(other.ID), 3))
	w.must("CreateWebhook under a higher limit", w.store.CreateWebhook(w.ctx, w.newWebhook(mine.ID), 4))
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&hooks[0])))
	w.must("CreateWebhook after DeleteWebhook", w.store.CreateWebhook(w.ctx, w.newWebhook(mine.ID), 4))
	list, err := w.store.Webhooks(w.ctx, mine.ID)
	if err != nil || len(list) != 4 {
		w.Errorf("Webhooks: %d, %v; want 4", len(list), err)
	}
}

func testWebhookLimitRace(w *world) {
	mine, other := w.addAccount(), w.addAccount()
	for _, a := range []formsvc.Account{mine, other} {
		const limit = 5
		won := w.race(24, formsvc.ErrLimit, func() error {
			return w.store.CreateWebhook(w.ctx, w.newWebhook(a.ID), limit)
		})
		list, err := w.store.Webhooks(w.ctx, a.ID)
		if err != nil || won != limit || len(list) != limit {
			w.Errorf("%d of 24 webhooks were added, %d exist (%v), want %d", won, len(list), err, limit)
		}
	}
}

func testDeleteWebhook(w *world) {
	sc := w.addScene()
	kept := w.addWebhook(sc.account.ID)
	for range 3 {
		w.addResponse(&sc.campaign)
	}
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook)))
	w.wantError("DeleteWebhook, again", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook)), formsvc.ErrNotFound)
	w.addResponse(&sc.campaign)
	if n := len(w.deliveries(&sc.hook)); n != 0 {
		w.Errorf("the deleted webhook lists %d deliveries", n)
	}
	claims := w.claim(request(nextDay()))
	for _, c := range claims {
		if c.Endpoint.ID != string(kept.ID) {
			w.Errorf("claimed a delivery to the deleted webhook")
		}
	}
	if len(claims) != 4 {
		w.Errorf("%d claims, want the 4 of the webhook that is left", len(claims))
	}
}

// An attempt in progress may end either way; there is none after it.
func testDeleteClaimed(w *world) {
	for _, result := range []delivery.Result{delivery.Delivered, delivery.Retry, delivery.Failed, delivery.Released, 0} {
		sc := w.addScene()
		w.addResponse(&sc.campaign)
		claim := w.claimOne(request(nextDay()))
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook)))
		if result != 0 { // else the lease just ends
			w.finish(delivery.Outcome{ID: claim.ID, Lease: claim.Lease, Result: result, Due: nextDay()})
		}
		if claims := w.claim(request(nextDay().Add(24 * time.Hour))); len(claims) != 0 {
			w.Errorf("result %d: claimed a delivery to a deleted webhook", result)
		}
		if n := len(w.deliveries(&sc.hook)); n != 0 {
			w.Errorf("result %d: the deleted webhook lists %d deliveries", result, n)
		}
	}
}

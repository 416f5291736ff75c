package storagetest

import (
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func webhookTests() []test {
	return []test{
		{"limit is per account", testWebhookLimit},
		{"limit holds for concurrent creates", testWebhookLimitRace},
		{"equal subscription returns the existing webhook", testSubscribeAgain},
		{"different subscriptions are created", testOtherSubscriptions},
		{"equal subscription at the limit", testSubscribeAtLimit},
		{"oldest of equal subscriptions is returned", testOldestSubscription},
		{"concurrent equal subscriptions create one", testSubscribeRace},
		{"deleted webhook gets no delivery", testDeleteWebhook},
		{"webhook is deleted during a delivery", testDeleteClaimed},
	}
}

func testWebhookLimit(w *world) {
	mine, other := w.addAccount(), w.addAccount()
	var hooks []formsvc.Webhook
	for range 3 {
		hook := w.newWebhook(mine.ID)
		hook.Disabled = len(hooks) == 1 // disabled webhooks count too
		w.must("CreateWebhook", w.subscribe(hook, 3))
		hooks = append(hooks, hook)
	}
	for _, limit := range []int{3, 2, 0} {
		err := w.subscribe(w.newWebhook(mine.ID), limit)
		w.wantError("CreateWebhook over the limit", err, formsvc.ErrLimit)
	}
	w.must("CreateWebhook in another account", w.subscribe(w.newWebhook(other.ID), 3))
	w.must("CreateWebhook under a higher limit", w.subscribe(w.newWebhook(mine.ID), 4))
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&hooks[0]), formsvc.Change{}))
	w.must("CreateWebhook after DeleteWebhook", w.subscribe(w.newWebhook(mine.ID), 4))
	list, err := w.store.Webhooks(w.ctx, mine.ID)
	if err != nil || len(list) != 4 {
		w.Errorf("Webhooks: %d, %v; want 4", len(list), err)
	}
}

func testWebhookLimitRace(w *world) {
	mine, other := w.addAccount(), w.addAccount()
	for _, a := range []formsvc.Account{mine, other} {
		const limit, tries = formsvc.MaxWebhooks, formsvc.MaxWebhooks + 10
		won := w.race(tries, formsvc.ErrLimit, func() error { return w.subscribe(w.newWebhook(a.ID), limit) })
		list, err := w.store.Webhooks(w.ctx, a.ID)
		if err != nil || won != limit || len(list) != limit {
			w.Errorf("%d of %d webhooks were added, %d exist (%v), want %d", won, tries, len(list), err, limit)
		}
	}
}

// twin returns a webhook with the same subscription as another one, and different in everything else.
func (w *world) twin(hook *formsvc.Webhook) formsvc.Webhook {
	twin := w.newWebhook(hook.AccountID)
	twin.URL, twin.CampaignID, twin.Events = hook.URL, hook.CampaignID, slices.Clone(hook.Events)
	twin.Headers, twin.Disabled = []formsvc.Header{{Name: "X-Twin", Value: "1"}}, true
	return twin
}

// wantTwin fails the test unless subscribing again returns the existing webhook.
func (w *world) wantTwin(what string, twin formsvc.Webhook, limit int, want *formsvc.Webhook) {
	w.Helper()
	got, created, err := w.store.CreateWebhook(w.ctx, twin, limit, nil)
	if err != nil || created {
		w.Errorf("%s: created %t, error %v; want the one that there is", what, created, err)
	}
	w.same(what+": webhook", got, *want)
}

func testSubscribeAgain(w *world) {
	sc := w.addScene()
	bound := w.newWebhook(sc.account.ID)
	bound.CampaignID, bound.Events = sc.campaign.ID, bound.Events[1:4]
	bound.Headers = []formsvc.Header{{Name: "X-A", Value: "a"}}
	w.must("CreateWebhook", w.subscribe(bound, formsvc.MaxWebhooks))
	before := w.snapshot()
	for _, hook := range []formsvc.Webhook{sc.hook, bound} {
		w.wantTwin("again", w.twin(&hook), formsvc.MaxWebhooks, &hook)
		reversed := w.twin(&hook)
		slices.Reverse(reversed.Events)
		w.wantTwin("events in another order", reversed, formsvc.MaxWebhooks, &hook)
	}
	w.unchanged("subscribing again", &before)

	// The current subscription counts, not the first one.
	moved := w.change(&bound, func(hook *formsvc.Webhook) { hook.URL, hook.Disabled = "https://moved.example/", true })
	w.wantTwin("after an update", w.twin(&moved), formsvc.MaxWebhooks, &moved)
	w.must("what it was before", w.subscribe(w.twin(&bound), formsvc.MaxWebhooks))
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	w.must("after it was deleted", w.subscribe(w.twin(&sc.hook), formsvc.MaxWebhooks))
}

func testOtherSubscriptions(w *world) {
	sc, other := w.addScene(), w.addScene()
	second := w.addCampaign(sc.account.ID)
	w.change(&sc.hook, func(hook *formsvc.Webhook) { hook.CampaignID, hook.Events = sc.campaign.ID, hook.Events[:2] })
	hook, err := w.store.Webhook(w.ctx, webhookKey(&sc.hook))
	w.must("Webhook", err)
	all := other.hook.Events
	for name, change := range map[string]func(*formsvc.Webhook){
		"no campaign":              func(hook *formsvc.Webhook) { hook.CampaignID = "" },
		"another campaign":         func(hook *formsvc.Webhook) { hook.CampaignID = second.ID },
		"fewer events":             func(hook *formsvc.Webhook) { hook.Events = all[:1] },
		"more events":              func(hook *formsvc.Webhook) { hook.Events = all[:3] },
		"other events":             func(hook *formsvc.Webhook) { hook.Events = all[1:3] },
		"another URL":              func(hook *formsvc.Webhook) { hook.URL += "/" },
		"a URL of other case":      func(hook *formsvc.Webhook) { hook.URL = "https://EXAMPLE.com" + hook.URL[len("https://example.com"):] },
		"a URL with a blank":       func(hook *formsvc.Webhook) { hook.URL += " " },
		"another account's to all": func(hook *formsvc.Webhook) { hook.URL, hook.CampaignID, hook.Events = other.hook.URL, "", all },
	} {
		twin := w.twin(&hook)
		change(&twin)
		w.must("CreateWebhook with "+name, w.subscribe(twin, formsvc.MaxWebhooks))
	}
}

func testSubscribeAtLimit(w *world) {
	a := w.addAccount()
	first, second := w.addWebhook(a.ID), w.addWebhook(a.ID)
	for _, limit := range []int{2, 1, 0} {
		w.wantTwin("at the limit", w.twin(&second), limit, &second)
	}
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&second), formsvc.Change{}))
	w.wantError("CreateWebhook over the limit", w.subscribe(w.twin(&second), 1), formsvc.ErrLimit)
	w.wantTwin("the one that is left", w.twin(&first), 1, &first)
}

// testOldestSubscription updates three webhooks so that they are equal.
func testOldestSubscription(w *world) {
	_, hooks := w.endpoints(3)
	for _, i := range []int{2, 0, 1} {
		hooks[i] = w.change(&hooks[i], func(hook *formsvc.Webhook) { hook.URL = "https://same.example/" })
	}
	for i := range hooks {
		w.wantTwin("equal ones", w.twin(&hooks[0]), formsvc.MaxWebhooks, &hooks[i])
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&hooks[i]), formsvc.Change{}))
	}
}

// subscribeTogether creates equal subscriptions concurrently, through the stores in turn. It fails the test unless one
// is created and every call returns it.
func (w *world) subscribeTogether(stores []Store, limit int) {
	w.Helper()
	a := w.addAccount()
	w.addWebhook(a.ID)
	model := w.newWebhook(a.ID)
	const tries = 20
	var (
		all     sync.WaitGroup
		stored  [tries]formsvc.Webhook
		created [tries]bool
	)
	for i := range tries {
		all.Go(func() {
			var err error
			stored[i], created[i], err = stores[i%len(stores)].CreateWebhook(w.ctx, w.twin(&model), limit, nil)
			w.check("CreateWebhook", err)
		})
	}
	all.Wait()
	list, err := w.store.Webhooks(w.ctx, a.ID)
	w.must("Webhooks", err)
	if len(list) != 2 {
		w.Fatalf("%d webhooks after %d equal subscriptions at once, want one more than before", len(list), tries)
	}
	made := 0
	for i := range stored {
		w.same("webhook", stored[i], list[1])
		if created[i] {
			made++
		}
	}
	if made != 1 {
		w.Errorf("%d of %d equal subscriptions were created, want 1", made, tries)
	}
}

func testSubscribeRace(w *world) {
	for _, limit := range []int{2, 3, formsvc.MaxWebhooks} {
		w.subscribeTogether([]Store{w.store}, limit)
	}
}

func testDeleteWebhook(w *world) {
	sc := w.addScene()
	kept := w.addWebhook(sc.account.ID)
	for range 3 {
		w.addResponse(&sc.campaign)
	}
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	w.wantError("DeleteWebhook, again", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}), formsvc.ErrNotFound)
	w.addResponse(&sc.campaign)
	if n := len(w.deliveries(&sc.hook)); n != 0 {
		w.Errorf("the deleted webhook lists %d deliveries", n)
	}
	claims := w.claim(nextDay())
	for _, c := range claims {
		if c.Endpoint != string(kept.ID) {
			w.Errorf("claimed a delivery to the deleted webhook")
		}
	}
	if len(claims) != 4 {
		w.Errorf("%d claims, want the 4 of the webhook that is left", len(claims))
	}
}

// An attempt in progress may end either way, but no other follows.
func testDeleteClaimed(w *world) {
	for _, result := range append(results(), 0) {
		sc := w.addScene()
		_, e := w.addResponse(&sc.campaign)
		claim := w.claimOne(nextDay())
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
		if result != 0 { // otherwise the lease expires
			w.finish(outcome(&claim, result, nextDay()))
		}
		if claims := w.claim(nextDay().Add(24 * time.Hour)); len(claims) != 0 {
			w.Errorf("result %d: claimed a delivery to a deleted webhook", result)
		}
		if n := len(w.deliveries(&sc.hook)); n != 0 {
			w.Errorf("result %d: the deleted webhook lists %d deliveries", result, n)
		}
		key := formsvc.DeliveryKey{AccountID: sc.account.ID, ID: formsvc.DeliveryID(e.ID, sc.hook.ID)}
		_, err := w.store.Delivery(w.ctx, key)
		w.wantError("Delivery to a deleted webhook", err, formsvc.ErrNotFound)
		w.wantDigests(nextDay().Add(24 * time.Hour))
	}
}

package storagetest

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func readyTests() []test {
	return []test{
		{"endpoint has every field", testReadyContent},
		{"previous secret until its end", testReadyPrevious},
		{"only endpoints with due deliveries", testReadyDue},
		{"leased and expired deliveries", testReadyLeased},
		{"due deliveries of each kind", testReadyKinds},
		{"disabled webhook with a redelivery", testReadyDisabled},
		{"deleted webhooks are left out", testReadyDeleted},
		{"all accounts in order", testReadyOrder},
	}
}

// wantReady fails the test unless exactly these endpoints have work at that time.
func (w *world) wantReady(what string, now time.Time, hooks ...*formsvc.Webhook) {
	w.Helper()
	want := make([]string, len(hooks))
	for i, hook := range hooks {
		want[i] = string(hook.ID)
	}
	w.same(what+": endpoints that are ready", w.ready(now), want)
}

func testReadyContent(w *world) {
	sc := w.addScene()
	full := w.newWebhook(sc.account.ID)
	full.URL = "https://example.com:8443/a?b=c#d"
	full.Previous, full.PreviousUntil = "the secret before", nextDay().Add(time.Hour)
	full.Headers = []formsvc.Header{{Name: "X-Token", Value: "a b"}, {Name: "Authorization", Value: "Bearer ~!"}}
	w.must("CreateWebhook", w.subscribe(full, formsvc.MaxWebhooks))
	w.addResponse(&sc.campaign)
	want := []delivery.Endpoint{
		{ID: string(sc.hook.ID), Account: string(sc.account.ID), URL: sc.hook.URL, Secret: sc.hook.Secret},
		{
			ID: string(full.ID), Account: string(sc.account.ID), URL: full.URL, Secret: full.Secret, Previous: full.Previous,
			Headers: http.Header{"X-Token": {"a b"}, "Authorization": {"Bearer ~!"}},
		},
	}
	got, err := w.store.Ready(w.ctx, nextDay())
	w.must("Ready", err)
	w.same("endpoints", got, want)
	got[1].Headers.Set("X-Token", "spoiled")

	// A delivery is signed and addressed as the webhook is when it is sent.
	w.change(&sc.hook, func(hook *formsvc.Webhook) {
		hook.URL, hook.Secret = "http://other.example/", "another secret"
		hook.Headers = []formsvc.Header{{Name: "X-New", Value: "1"}}
	})
	want[0].URL, want[0].Secret, want[0].Headers = "http://other.example/", "another secret", http.Header{"X-New": {"1"}}
	got, err = w.store.Ready(w.ctx, nextDay())
	w.must("Ready", err)
	w.same("endpoints after an update", got, want)
}

func testReadyPrevious(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	until := nextDay().Add(time.Hour)
	w.change(&sc.hook, func(hook *formsvc.Webhook) { hook.Previous, hook.PreviousUntil = "the secret before", until })
	for now, want := range map[time.Time]string{
		nextDay(): "the secret before", until.Add(-time.Microsecond): "the secret before",
		until.Add(time.Microsecond): "", until.Add(1000 * time.Hour): "",
	} {
		got, err := w.store.Ready(w.ctx, now)
		w.must("Ready", err)
		if len(got) != 1 || got[0].Previous != want || got[0].Secret != sc.hook.Secret {
			w.Errorf("Ready at %v: %+v, want the previous secret %q", now, got, want)
		}
	}
}

func testReadyDue(w *world) {
	sc := w.addScene()
	now := nextDay()
	w.wantReady("nothing is there", now)
	w.addDue(&sc.campaign, now.Add(time.Hour))
	w.addDue(&sc.campaign, now.Add(2*time.Hour))
	w.wantReady("too early", now.Add(time.Hour-time.Microsecond))
	w.wantReady("one is due", now.Add(time.Hour), &sc.hook)
	w.wantReady("one is due, in another zone", now.Add(time.Hour).In(time.FixedZone("", -3600)), &sc.hook)
	w.attend(&sc.hook, now.Add(time.Hour), delivery.Delivered)
	w.wantReady("one is done", now.Add(2*time.Hour-time.Microsecond))
	w.attend(&sc.hook, now.Add(2*time.Hour), delivery.Failed)
	w.wantReady("all are done", now.Add(1000*time.Hour))
}

func testReadyLeased(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	w.takeOne(nextDay(), &sc.hook)
	w.wantReady("leased", nextDay())
	w.wantReady("leased to the end", nextDay().Add(lease-time.Microsecond))
	w.wantReady("the lease ended", nextDay().Add(lease), &sc.hook)
	claim := w.takeOne(nextDay().Add(lease), &sc.hook)
	w.wantReady("leased again", nextDay().Add(lease))
	o := outcome(&claim, delivery.Released, nextDay().Add(lease))
	w.finish(o)
	w.wantReady("given back", o.Due, &sc.hook)
}

// testReadyKinds has due deliveries of one kind behind deliveries of others that aren't due.
func testReadyKinds(w *world) {
	now := nextDay()
	for _, kind := range []delivery.Kind{delivery.First, delivery.Retry, delivery.Replay} {
		sc := w.addScene()
		m := w.addMix(sc, now, map[delivery.Kind][]time.Duration{
			delivery.First: {time.Hour}, delivery.Retry: {time.Hour}, delivery.Replay: {time.Hour},
		})
		w.wantReady("nothing is due", now.Add(-time.Second))
		w.wantReady("all is for later", now)
		d := m[kind][0]
		_, err := w.store.Redeliver(w.ctx, deliveryKey(&d), now, nil)
		w.must("Redeliver", err)
		w.wantReady("one is due", now, &sc.hook)
		if claim := w.claimOne(now); claim.Kind != kind || claim.ID != string(d.ID) {
			w.Errorf("claimed %+v, want delivery %s of kind %d", claim, d.ID, kind)
		}
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	}
}

func testReadyDisabled(w *world) {
	sc := w.addScene()
	now := nextDay()
	done := w.addDue(&sc.campaign, start())
	w.attend(&sc.hook, start(), delivery.Failed)
	w.addDue(&sc.campaign, start().Add(time.Second))
	w.attend(&sc.hook, start().Add(time.Second), delivery.Postponed)
	w.addDue(&sc.campaign, start().Add(2*time.Second))
	w.change(&sc.hook, disable)
	w.wantReady("disabled, a first attempt and a retry are due", now)
	d := w.delivery(&done, &sc.hook)
	_, err := w.store.Redeliver(w.ctx, deliveryKey(&d), now, nil)
	w.must("Redeliver", err)
	w.wantReady("disabled, a replay is for later", now.Add(-time.Microsecond))
	w.wantReady("disabled, a replay is due", now, &sc.hook)
	if claim := w.claimOne(now); claim.ID != string(d.ID) || claim.Kind != delivery.Replay {
		w.Errorf("claimed %+v, want the replay", claim)
	}
	w.wantReady("disabled, the replay is under way", now)
	w.wantReady("disabled, the replay was lost", now.Add(lease), &sc.hook)
	w.change(&sc.hook, enable)
	w.wantReady("enabled again", now, &sc.hook)
	if claims := w.claim(now); len(claims) != 2 {
		w.Errorf("%d claims after it was enabled, want 2", len(claims))
	}
}

func testReadyDeleted(w *world) {
	sc := w.addScene()
	w.addMix(sc, nextDay(), map[delivery.Kind][]time.Duration{delivery.First: {0}, delivery.Retry: {0}, delivery.Replay: {0}})
	w.wantReady("before", nextDay(), &sc.hook)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	w.wantReady("deleted", nextDay())
}

func testReadyOrder(w *world) {
	random := rand.New(rand.NewPCG(20, 21))
	var want []string
	for i := range 4 {
		a := w.addAccount()
		c := w.addCampaign(a.ID)
		for range 6 {
			hook := w.newWebhook(a.ID)
			hook.ID = randomID(random)
			w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
			want = append(want, string(hook.ID))
		}
		for range i + 1 { // each is returned once, however many deliveries it has
			w.addResponse(&c)
		}
	}
	slices.Sort(want)
	w.same("endpoints that are ready", w.ready(nextDay()), want)
}

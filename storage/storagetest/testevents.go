package storagetest

import (
	"errors"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func testEventTests() []test {
	return []test{
		{"only the tested webhook gets it", testTestEvent},
		{"subscription and state don't matter", testTestEventAnyway},
		{"failure leaves no notice", testTestEventFails},
		{"event and delivery are atomic", testTestEventUnit},
	}
}

func testTestEvent(w *world) {
	sc := w.addScene()
	neighbour := w.addWebhook(sc.account.ID)
	_, real := w.addResponse(&sc.campaign)
	e := w.newTestEvent(sc.account.ID)
	e.Payload = []byte("{\"test\":true}\x00\xff")
	got, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), e, nil)
	w.must("CreateTest", err)
	w.same("delivery of a test event", got, pending(&e, &sc.hook))
	w.same("deliveries", w.deliveries(&sc.hook), []formsvc.Delivery{pending(&real, &sc.hook), pending(&e, &sc.hook)})
	w.same("deliveries of another webhook", w.deliveries(&neighbour), []formsvc.Delivery{pending(&real, &neighbour)})
	payloads, err := w.store.Payloads(w.ctx, []string{string(e.ID)})
	w.must("Payloads", err)
	w.same("payload", payloads, payloadsOf(e))

	w.attend(&sc.hook, real.CreatedAt, delivery.Delivered)
	w.attend(&neighbour, real.CreatedAt, delivery.Delivered)
	if claims := w.claim(e.CreatedAt.Add(-time.Microsecond)); len(claims) != 0 {
		w.Errorf("a test event was claimed before its time")
	}
	claim := w.claimOne(e.CreatedAt)
	w.same("claim", claim, delivery.Claim{
		ID: string(got.ID), Lease: claim.Lease, EventID: string(e.ID), Event: string(e.Type), Endpoint: string(sc.hook.ID),
		Kind: delivery.Replay, Size: len(e.Payload),
	})
	if !w.finish(outcome(&claim, delivery.Delivered, nextDay())) {
		w.Errorf("the outcome of a test event was not accepted")
	}
	if d := w.delivery(&e, &sc.hook); d.State != formsvc.DeliveryDelivered || !d.Test || len(d.Log) != 1 {
		w.Errorf("the delivery is %+v, want it delivered and of a test", d)
	}
	w.redeliver(&e, &sc.hook, nextDay())
	if again := w.claimOne(nextDay()); again.Kind != delivery.Replay || again.Attempts != 1 {
		w.Errorf("redelivered as %+v, want a replay after one attempt", again)
	}
}

// testTestEventAnyway sends a test event of a type and a campaign that the webhook doesn't subscribe to, while it is
// disabled.
func testTestEventAnyway(w *world) {
	sc := w.addScene()
	w.change(&sc.hook, func(hook *formsvc.Webhook) {
		hook.Events, hook.CampaignID, hook.Disabled = []formsvc.EventType{webhook.FileUploaded}, sc.campaign.ID, true
	})
	for _, t := range webhook.EventTypes() {
		e := w.newTestEvent(sc.account.ID)
		e.Type = t
		got, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), e, nil)
		w.must("CreateTest", err)
		w.same("delivery", got, pending(&e, &sc.hook))
		if claim := w.claimOne(nextDay()); claim.Event != string(t) || claim.EventID != string(e.ID) {
			w.Errorf("claimed %+v, want the event of type %s", claim, t)
		}
	}
	w.change(&sc.hook, enable)
	e := w.newTestEvent(sc.account.ID)
	e.Type = webhook.FileUploaded
	listening := w.addWebhook(sc.account.ID)
	_, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), e, nil)
	w.must("CreateTest", err)
	w.same("deliveries of a webhook that listens to all", w.deliveries(&listening), []formsvc.Delivery{})
}

func testTestEventFails(w *world) {
	sc := w.addScene()
	e := w.newTestEvent(sc.account.ID)
	_, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), e, nil)
	w.must("CreateTest", err)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	if d := w.delivery(&e, &sc.hook); d.State != formsvc.DeliveryFailed || d.Attempts != 1 {
		w.Errorf("the delivery is %+v, want it failed after one attempt", d)
	}
	w.same("notices of a test event", w.notices(sc.account.ID), []formsvc.Notice{})
	w.wantFailures(nextDay().Add(time.Hour), 0)
	w.wantDigests(nextDay().Add(time.Hour))
}

func testTestEventUnit(w *world) {
	sc, other := w.addScene(), w.addScene()
	before := w.snapshot()
	for name, key := range map[string]formsvc.WebhookKey{
		"no webhook":                {AccountID: sc.account.ID, ID: w.nextID()},
		"another account's webhook": {AccountID: sc.account.ID, ID: other.hook.ID},
		"no account":                {AccountID: w.nextID(), ID: sc.hook.ID},
	} {
		e := w.newTestEvent(key.AccountID)
		_, err := w.store.CreateTest(w.ctx, key, e, nil)
		w.wantError("CreateTest for "+name, err, formsvc.ErrNotFound)
		w.noEvents("CreateTest for "+name, e)
	}
	e := w.newTestEvent(sc.account.ID)
	e.Type = "\x00"
	if _, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), e, nil); !errors.Is(err, formsvc.ErrInvalid) {
		w.Errorf("CreateTest with a NUL: error %v, want %v", err, formsvc.ErrInvalid)
	}
	w.noEvents("CreateTest that failed", e)
	w.unchanged("CreateTest that failed", &before)
}

package storagetest

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func outboxTests() []test {
	return []test{
		{"every subscribed webhook gets a delivery", testListens},
		{"later webhooks get no earlier event", testLateWebhook},
		{"event without a subscriber is kept", testUnheardEvent},
		{"payloads are kept byte for byte", testPayloads},
		{"trace is kept with its event", testTraces},
		{"existing event", testEventTwice},
		{"failed transactions raise no event", testFailedUnits},
	}
}

// payloadOf returns the payload that the delivery engine gets for an event.
func payloadOf(e *formsvc.Event) delivery.Payload {
	return delivery.Payload{Body: e.Payload, TraceParent: e.TraceParent}
}

func payloadsOf(e formsvc.Event) map[string]delivery.Payload {
	return map[string]delivery.Payload{string(e.ID): payloadOf(&e)}
}

// noEvents fails the test if the store has one of the events.
func (w *world) noEvents(what string, events ...formsvc.Event) {
	w.Helper()
	for _, e := range events {
		payloads, err := w.store.Payloads(w.ctx, []string{string(e.ID)})
		w.must("Payloads", err)
		if len(payloads) != 0 {
			w.Errorf("%s: its event exists", what)
		}
	}
}

// pending returns the delivery of an event to a webhook before its first attempt.
func pending(e *formsvc.Event, hook *formsvc.Webhook) formsvc.Delivery {
	return formsvc.Delivery{
		ID: formsvc.DeliveryID(e.ID, hook.ID), AccountID: hook.AccountID, WebhookID: hook.ID, EventID: e.ID,
		Event: e.Type, Test: e.Test, State: formsvc.DeliveryPending, DueAt: e.CreatedAt, CreatedAt: e.CreatedAt,
	}
}

// wantHeard fails the test unless each webhook has exactly one delivery of each event that it subscribes to, and no
// other.
func (w *world) wantHeard(hooks []formsvc.Webhook, events []formsvc.Event) {
	w.Helper()
	for i := range hooks {
		var want []formsvc.Delivery
		for j := range events {
			if hooks[i].Listens(&events[j]) {
				want = append(want, pending(&events[j], &hooks[i]))
			}
		}
		slices.SortFunc(want, func(a, b formsvc.Delivery) int { return cmp.Compare(a.ID, b.ID) })
		w.same("deliveries of "+hooks[i].URL, w.deliveries(&hooks[i]), want)
	}
}

func testListens(w *world) {
	mine, other := w.addAccount(), w.addAccount()
	c, second := w.addCampaign(mine.ID), w.addCampaign(mine.ID)
	types := webhook.EventTypes()
	choices := [][]formsvc.EventType{types, types[:1], types[len(types)-1:]}
	var hooks []formsvc.Webhook
	for _, events := range choices {
		for _, campaign := range []formsvc.ID{"", c.ID, second.ID} {
			for _, disabled := range []bool{false, true} {
				hook := w.newWebhook(mine.ID)
				hook.Events, hook.CampaignID, hook.Disabled = events, campaign, disabled
				hooks = append(hooks, hook)
			}
		}
	}
	hooks = append(hooks, w.newWebhook(other.ID))
	for i := range hooks {
		w.must("CreateWebhook", w.subscribe(hooks[i], formsvc.MaxWebhooks))
	}

	r := w.newResponse(&c)
	events := w.eventsOfAllTypes(&r)
	w.must("CreateResponse", w.create(r, events...))
	w.wantHeard(hooks, events)
	_, err := w.store.UpdateResponse(w.ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
		more := w.eventsOfAllTypes(r)
		events = append(events[:len(types)], more...) // the function may run again
		r.Version++
		return formsvc.Change{Events: more}, nil
	})
	w.must("UpdateResponse", err)
	w.wantHeard(hooks, events)
	for _, e := range events {
		payloads, err := w.store.Payloads(w.ctx, []string{string(e.ID)})
		w.must("Payloads", err)
		w.same("payload", payloads, payloadsOf(e))
	}
}

func (w *world) eventsOfAllTypes(r *formsvc.Response) []formsvc.Event {
	var events []formsvc.Event
	for _, t := range webhook.EventTypes() {
		e := w.newEvent(r)
		e.Type = t
		events = append(events, e)
	}
	return events
}

func testLateWebhook(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	late := w.addWebhook(sc.account.ID)
	w.wantHeard([]formsvc.Webhook{sc.hook}, []formsvc.Event{e})
	w.wantHeard([]formsvc.Webhook{late}, nil)
}

func testUnheardEvent(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	_, e := w.addResponse(&c)
	payloads, err := w.store.Payloads(w.ctx, []string{string(e.ID)})
	w.must("Payloads", err)
	w.same("payloads", payloads, payloadsOf(e))
	if claims := w.claim(nextDay()); len(claims) != 0 {
		w.Errorf("%d deliveries of an event that nobody listens to", len(claims))
	}
}

func testPayloads(w *world) {
	sc := w.addScene()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	large := make([]byte, formsvc.MaxPayload)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(large)
	r := w.newResponse(&sc.campaign)
	var events []formsvc.Event
	want := map[string]delivery.Payload{}
	for _, payload := range [][]byte{
		every, large, {}, []byte("{}"), []byte(` {"b":1,"a":"\u0000\ud800","b":1e400} ` + "\r\n"), bytes.Repeat([]byte("?"), 1000),
	} {
		e := w.newEvent(&r)
		e.Payload = payload
		events = append(events, e)
		want[string(e.ID)] = payloadOf(&e)
	}
	w.must("CreateResponse", w.create(r, events...))
	var asked []string
	for id := range want {
		asked = append(asked, id, id)
	}
	got, err := w.store.Payloads(w.ctx, append(asked, string(w.nextID())))
	w.must("Payloads", err)
	w.same("payloads", got, want)
}

// testTraces raises events with different traces and without one in the same transactions.
func testTraces(w *world) {
	sc := w.addScene()
	traced := func(r *formsvc.Response) []formsvc.Event {
		events := w.eventsOfAllTypes(r)
		for i, trace := range []string{
			"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		} {
			events[i].TraceParent = trace
		}
		return events
	}
	r := w.newResponse(&sc.campaign)
	events := traced(&r)
	w.must("CreateResponse", w.create(r, events...))
	var more []formsvc.Event // the function may run again
	_, err := w.store.UpdateResponse(w.ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
		more = traced(r)
		r.Version++
		return formsvc.Change{Events: more}, nil
	})
	w.must("UpdateResponse", err)
	events = append(events, more...)
	test := w.newTestEvent(sc.account.ID)
	test.TraceParent = "00-80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-01"
	_, err = w.store.CreateTest(w.ctx, webhookKey(&sc.hook), test, nil)
	w.must("CreateTest", err)

	for _, e := range append(slices.Clone(events), test) {
		payloads, err := w.store.Payloads(w.ctx, []string{string(e.ID)})
		w.must("Payloads", err)
		w.same("payload", payloads, payloadsOf(e))
		got, err := w.store.Event(w.ctx, sc.account.ID, e.ID)
		w.must("Event", err)
		w.same("event", got, e)
	}
	page, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &events[len(events)-1])
	w.same("feed", page, events)
}

// testEventTwice raises an existing event again. If the store refuses existing events, nothing of the transaction may
// be left; if it accepts them, the rest must be stored.
func testEventTwice(w *world) {
	sc := w.addScene()
	stored, first := w.addResponse(&sc.campaign)
	before := w.snapshot()

	r := w.newResponse(&sc.campaign)
	fresh, again := w.newEvent(&r), first
	if err := w.create(r, fresh, again); err != nil {
		w.unchanged("CreateResponse with an event that exists", &before)
		w.noEvents("CreateResponse with an event that exists", fresh)
	} else {
		w.wantHeard([]formsvc.Webhook{sc.hook}, []formsvc.Event{first, fresh})
	}
	before = w.snapshot()
	_, err := w.store.UpdateResponse(w.ctx, keyOf(&stored), func(r *formsvc.Response) (formsvc.Change, error) {
		r.Status = "changed"
		r.Version++
		fresh = w.newEvent(r)
		return formsvc.Change{Events: []formsvc.Event{fresh, again}}, nil
	})
	if err != nil {
		w.unchanged("UpdateResponse with an event that exists", &before)
		w.noEvents("UpdateResponse with an event that exists", fresh)
	}
}

func testFailedUnits(w *world) {
	sc := w.addScene()
	taken, _ := w.addResponse(&sc.campaign)
	before := w.snapshot()
	conflict := w.newResponse(&sc.campaign)
	conflict.Reference = taken.Reference
	invalid := w.newResponse(&sc.campaign)
	invalid.User.FirstName = "\x00"
	unknown := w.newResponse(&sc.campaign)
	unknown.CampaignID = w.nextID()
	stale := w.newResponse(&sc.campaign)
	for _, c := range []struct {
		r       formsvc.Response
		version int64
		want    error
	}{
		{conflict, 1, formsvc.ErrConflict},
		{invalid, 1, formsvc.ErrInvalid},
		{unknown, 1, formsvc.ErrNotFound},
		{stale, 9, formsvc.ErrStale},
	} {
		events := w.eventsOfAllTypes(&c.r)
		err := w.store.CreateResponse(w.ctx, c.r, c.version, formsvc.Change{Events: events})
		w.wantError("CreateResponse", err, c.want)
		w.noEvents("CreateResponse that failed", events...)
	}
	missing := keyOf(&taken)
	missing.ID = w.nextID()
	event := w.newEvent(&taken)
	_, err := w.store.UpdateResponse(w.ctx, missing, func(*formsvc.Response) (formsvc.Change, error) {
		return formsvc.Change{Events: []formsvc.Event{event}}, nil
	})
	w.wantError("UpdateResponse", err, formsvc.ErrNotFound)
	w.noEvents("UpdateResponse that failed", event)
	w.unchanged("units that failed", &before)
	if claims := w.claim(nextDay()); len(claims) != 1 {
		w.Errorf("%d claims, want that of the one unit that succeeded", len(claims))
	}
}

package storagetest

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func pruneTests() []test {
	return []test{
		{"old events are deleted and new ones kept", testPruneAge},
		{"deliveries go with their event", testPruneBelongings},
		{"claim whose event was pruned", testPruneClaimed},
		{"steps keep to the limit", testPruneSteps},
		{"events of deleted webhooks", testPruneDeleted},
		{"other records are kept", testPruneNothingElse},
	}
}

// prune prunes until nothing is left to delete, and returns the number of deleted rows.
func (w *world) prune(before time.Time, limit int) int {
	w.Helper()
	total := 0
	for range 10_000 {
		n, err := w.store.Prune(w.ctx, formsvc.PruneEvents, before, limit)
		w.must("Prune", err)
		if n == 0 {
			return total
		}
		if n < 0 {
			w.Fatalf("Prune: %d rows", n)
		}
		total += n
	}
	w.Fatalf("Prune finds no end")
	return 0
}

// eventAt adds an event made at that time, with an ID of that time.
func (w *world) eventAt(c *formsvc.Campaign, at time.Time) formsvc.Event {
	w.Helper()
	r := w.newResponse(c)
	e := w.newEvent(&r)
	e.ID, e.CreatedAt = idAt(at, w.count.Add(1)), at
	w.must("CreateResponse", w.create(r, e))
	return e
}

// hours returns the start of an hour n hours after nextDay's. Limits of age are in whole milliseconds, like the times
// in identifiers.
func hours(n int) time.Time { return nextDay().Truncate(time.Hour).Add(time.Duration(n) * time.Hour) }

func testPruneAge(w *world) {
	sc := w.addScene()
	old := []formsvc.Event{w.eventAt(&sc.campaign, hours(0)), w.eventAt(&sc.campaign, hours(1).Add(-time.Microsecond))}
	young := []formsvc.Event{w.eventAt(&sc.campaign, hours(1)), w.eventAt(&sc.campaign, hours(2))}
	_, next := w.feed(formsvc.EventQuery{AccountID: sc.account.ID, Limit: 1}, &old[0])
	q := formsvc.EventQuery{AccountID: sc.account.ID}
	w.feed(q, &young[1])
	before := w.snapshot()
	if n := w.prune(hours(0), 10); n != 0 {
		w.Errorf("Prune of what is older than the first event: %d rows", n)
	}
	if n := w.prune(time.Time{}, 10); n != 0 {
		w.Errorf("Prune of no time: %d rows", n)
	}
	w.unchanged("Prune of nothing", &before)
	if n := w.prune(hours(1).In(time.FixedZone("", 3600)), 10); n < 4 {
		w.Errorf("Prune of two events with a delivery each: %d rows", n)
	}
	w.noEvents("Prune of what is older", old...)
	w.wantHeard([]formsvc.Webhook{sc.hook}, young)
	for _, after := range []formsvc.EventPosition{{}, next} {
		q.After = after
		got, _ := w.feed(q, &young[1])
		w.same("events that are left", got, young)
	}
	if claims := w.claim(hours(3)); len(claims) != 2 {
		w.Errorf("%d claims, want those of the two events that are left", len(claims))
	}
	w.prune(hours(3), 10)
	w.noEvents("Prune of all", young...)
	w.wantHeard([]formsvc.Webhook{sc.hook}, nil)
}

// testPruneBelongings has an event with each history: delivered, failed, failed and noted, pending, sent again, a test
// event, and one without a subscriber.
func testPruneBelongings(w *world) {
	sc, silent := w.addScene(), w.addScene()
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&silent.hook), formsvc.Change{}))
	w.eventAt(&silent.campaign, hours(0))
	w.eventAt(&sc.campaign, hours(0))
	w.attend(&sc.hook, hours(0), delivery.Delivered)
	for range 3 {
		w.eventAt(&sc.campaign, hours(0))
	}
	failed := w.attend(&sc.hook, hours(0), delivery.Failed)
	w.must("Noted", w.store.Noted(w.ctx, []string{failed[0].ID}))
	w.redeliver(&formsvc.Event{ID: formsvc.ID(failed[2].EventID)}, &sc.hook, hours(5))
	w.eventAt(&sc.campaign, hours(0))
	w.attend(&sc.hook, hours(0), delivery.Postponed)
	w.eventAt(&sc.campaign, hours(0))
	e := w.newTestEvent(sc.account.ID)
	e.ID, e.CreatedAt = idAt(hours(0), w.count.Add(1)), hours(0)
	_, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), e, nil)
	w.must("CreateTest", err)
	young := w.eventAt(&sc.campaign, hours(2))
	claims := w.take(hours(2), share(&sc.hook, 100))
	var notices []formsvc.Notice
	for _, c := range claims {
		if c.EventID == string(young.ID) {
			w.finish(outcome(&c, delivery.Failed, hours(2)))
			notices = w.notices(sc.account.ID)[3:]
		} else {
			w.finish(outcome(&c, delivery.Released, hours(2)))
		}
	}
	if len(notices) != 1 || notices[0].EventID != young.ID {
		w.Fatalf("notices of the younger event: %+v, want one", notices)
	}

	// 8 events, 7 deliveries, 5 attempts and 3 notices.
	if n := w.prune(hours(1), 100); n < 23 {
		w.Errorf("Prune: %d rows, want 23 and more", n)
	}
	if list := w.deliveries(&sc.hook); len(list) != 1 || list[0].EventID != young.ID || len(list[0].Log) != 1 {
		w.Errorf("deliveries: %+v, want that of the younger event, with its attempt", list)
	}
	w.same("notices", w.notices(sc.account.ID), notices)
	w.wantFailures(hours(9), 1)
	w.wantReady("after Prune", hours(9))
	w.wantStats("after Prune", hours(9), 0, time.Time{})
	w.noEvents("Prune", e)
	if n := w.prune(hours(1), 100); n != 0 {
		w.Errorf("Prune, again: %d rows", n)
	}
}

func testPruneClaimed(w *world) {
	for _, result := range results() {
		sc := w.addScene()
		e := w.eventAt(&sc.campaign, hours(0))
		claim := w.takeOne(hours(0), &sc.hook)
		w.prune(hours(1), 10)
		if w.finish(outcome(&claim, result, hours(0))) {
			w.Errorf("result %d of a delivery that is gone was accepted", result)
		}
		w.wantReady("gone", hours(9))
		w.same("notices", w.notices(sc.account.ID), []formsvc.Notice{})
		w.wantDigests(hours(9))
		w.wantHeard([]formsvc.Webhook{sc.hook}, nil)
		w.noEvents("Prune", e)
		w.must("Noted", w.store.Noted(w.ctx, []string{claim.ID}))
	}
}

// testPruneSteps checks that a step deletes about as many rows as the limit: a few more are allowed, but not all.
func testPruneSteps(w *world) {
	c, hooks := w.endpoints(2)
	const n = 40
	for range n {
		w.eventAt(&c, hours(0))
	}
	w.attend(&hooks[0], hours(0), delivery.Failed)
	if rows, err := w.store.Prune(w.ctx, formsvc.PruneEvents, hours(1), 2); err != nil || rows <= 0 {
		w.Fatalf("Prune: %d, %v; want some rows", rows, err)
	}
	if left := len(w.deliveries(&hooks[0])); left < n/2 {
		w.Errorf("after a step of 2, %d of %d deliveries are left", left, n)
	}
	w.prune(hours(1), 2)
	for i := range hooks {
		w.wantHeard(hooks[i:i+1], nil)
	}
	w.same("notices", w.notices(c.AccountID), []formsvc.Notice{})
}

// testPruneDeleted deletes webhooks and keeps their events.
func testPruneDeleted(w *world) {
	c, hooks := w.endpoints(3)
	var events []formsvc.Event
	for range 5 {
		events = append(events, w.eventAt(&c, hours(2)))
	}
	w.attend(&hooks[0], hours(2), delivery.Failed)
	w.attend(&hooks[1], hours(2), delivery.Postponed)
	for i := range hooks[:2] {
		w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&hooks[i]), formsvc.Change{}))
	}
	w.prune(time.Time{}, 3)
	w.wantStats("the backlog of the remaining webhook", hours(2), 5, hours(2))
	w.wantHeard(hooks[2:], events)
	w.wantReady("the webhook that is left", hours(2), &hooks[2])
	got, _ := w.feed(formsvc.EventQuery{AccountID: c.AccountID}, &events[4])
	w.same("events", got, events)
	for _, e := range events {
		payloads, err := w.store.Payloads(w.ctx, []string{string(e.ID)})
		w.must("Payloads", err)
		w.same("payloads", payloads, payloadsOf(e))
	}
}

// testPruneNothingElse checks that pruning deletes only events and their records.
func testPruneNothingElse(w *world) {
	sc := w.addScene()
	w.addKey(sc.account.ID)
	r, _ := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	before := w.snapshot()
	w.prune(hours(1), 100)
	before.Deliveries[sc.hook.ID], before.Notices[sc.account.ID] = nil, nil
	clear(before.Payloads)
	w.unchanged("Prune of all events", &before)
	w.wantError("CreateResponse with a taken reference", w.create(r), formsvc.ErrConflict)
	e := w.eventAt(&sc.campaign, hours(2))
	w.wantHeard([]formsvc.Webhook{sc.hook}, []formsvc.Event{e})
	got, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &e)
	w.same("events", got, []formsvc.Event{e})
}

package storagetest

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

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

package storagetest

import (
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// feed reads on from q.After until it finds that event. It returns all events up to there and the position. A store may
// show an event late, for example while an older transaction is open.
func (w *world) feed(q formsvc.EventQuery, last *formsvc.Event) ([]formsvc.Event, formsvc.EventPosition) {
	w.Helper()
	guard, stop := context.WithTimeout(w.ctx, 2*time.Minute)
	defer stop()
	var events []formsvc.Event
	for guard.Err() == nil {
		page := w.events(q)
		events = append(events, page.Items...)
		q.After = page.Next
		if slices.ContainsFunc(page.Items, func(e formsvc.Event) bool { return e.ID == last.ID }) {
			return events, q.After
		}
		if len(page.Items) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	w.Fatalf("Events: %d events came, and event %s did not", len(events), last.ID)
	return nil, q.After
}

// events returns a page, and checks that its position moves on.
func (w *world) events(q formsvc.EventQuery) formsvc.EventPage {
	w.Helper()
	page, err := w.store.Events(w.ctx, q)
	w.must("Events", err)
	if page.Next == q.After && (len(page.Items) > 0 || page.More) {
		w.Fatalf("Events: a page of %d events (more: %t) leads back to where it began", len(page.Items), page.More)
	}
	if limit := q.Clamped().Limit; len(page.Items) > limit {
		w.Errorf("Events: %d events, limit %d", len(page.Items), limit)
	}
	return page
}

// addEvents raises events of these types, one after the other.
func (w *world) addEvents(c *formsvc.Campaign, types ...formsvc.EventType) []formsvc.Event {
	w.Helper()
	events := make([]formsvc.Event, len(types))
	for i, t := range types {
		r := w.newResponse(c)
		events[i] = w.newEvent(&r)
		events[i].Type = t
		w.must("CreateResponse", w.create(r, events[i]))
	}
	return events
}

// wholeFeed reads page by page from q.After until it finds that event. It returns all events up to there and the
// position.
func (w *world) wholeFeed(q formsvc.EventQuery, last formsvc.ID) ([]formsvc.Event, formsvc.EventPosition) {
	w.Helper()
	guard, stop := context.WithTimeout(w.ctx, 2*time.Minute)
	defer stop()
	var events []formsvc.Event
	for guard.Err() == nil {
		page, err := allEvents(w.ctx, w.store, q)
		w.must("AllEvents", err)
		if limit := q.Clamped().Limit; len(page.Items) > limit {
			w.Errorf("AllEvents: %d events, limit %d", len(page.Items), limit)
		}
		if page.Next == q.After && (len(page.Items) > 0 || page.More) {
			w.Fatalf("AllEvents: a page of %d events (more: %t) leads back to where it began", len(page.Items), page.More)
		}
		events = append(events, page.Items...)
		q.After = page.Next
		if slices.ContainsFunc(page.Items, func(e formsvc.Event) bool { return e.ID == last }) {
			return events, q.After
		}
		if len(page.Items) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	w.Fatalf("AllEvents: %d events came, and event %s did not", len(events), last)
	return nil, q.After
}

// addMixed raises events of several accounts in turn, with test events between them.
func (w *world) addMixed(scenes []*scene, rounds int) (events []formsvc.Event) {
	w.Helper()
	types := webhook.EventTypes()
	for i := range rounds {
		for j, sc := range scenes {
			if (i+j)%3 == 2 {
				_, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), w.newTestEvent(sc.account.ID), nil)
				w.must("CreateTest", err)
			}
			events = append(events, w.addEvents(&sc.campaign, types[(i*len(scenes)+j)%len(types)])...)
		}
	}
	return events
}

func testWholeFeed(w *world) {
	scenes := []*scene{w.addScene(), w.addScene(), w.addScene()}
	silent := w.addAccount()
	want := w.addMixed(scenes, 5)
	last := want[len(want)-1].ID
	for _, limit := range []int{0, 1, 2, len(want) - 1, len(want), len(want) + 1} {
		for _, account := range []formsvc.ID{"", scenes[0].account.ID, silent.ID, "nope"} {
			got, _ := w.wholeFeed(formsvc.EventQuery{AccountID: account, Limit: limit}, last)
			w.same("events of all accounts", got, want)
		}
	}
	// A reader that goes on from any position misses nothing.
	page, err := allEvents(w.ctx, w.store, formsvc.EventQuery{Limit: 4})
	w.must("AllEvents", err)
	more := w.addMixed(scenes, 2)
	got, end := w.wholeFeed(formsvc.EventQuery{After: page.Next, Limit: 3}, more[len(more)-1].ID)
	w.same("events after the fourth", got, append(want[4:], more...))
	page, err = allEvents(w.ctx, w.store, formsvc.EventQuery{After: end})
	w.must("AllEvents", err)
	w.same("events after the last", len(page.Items), 0)
}

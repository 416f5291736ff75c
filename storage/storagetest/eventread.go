package storagetest

import (
	"bytes"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// recent returns the newest events of an account.
func (w *world) recent(account formsvc.ID, limit int) []formsvc.Event {
	w.Helper()
	events, err := w.store.RecentEvents(w.ctx, formsvc.RecentQuery{AccountID: account, Limit: limit})
	w.must("RecentEvents", err)
	return events
}

// about returns the oldest events about a response.
func (w *world) about(r *formsvc.Response, limit int) []formsvc.Event {
	w.Helper()
	events, err := w.store.EventsAbout(w.ctx, keyOf(r), limit)
	w.must("EventsAbout", err)
	return events
}

// newestOf returns at most limit events from the end of a list, in reverse.
func newestOf(events []formsvc.Event, limit int) []formsvc.Event {
	list := slices.Clone(events[max(len(events)-limit, 0):])
	slices.Reverse(list)
	return list
}

// addTest adds a test event for a webhook.
func (w *world) addTest(hook *formsvc.Webhook) formsvc.Event {
	w.Helper()
	e := w.newTestEvent(hook.AccountID)
	_, err := w.store.CreateTest(w.ctx, webhookKey(hook), e, nil)
	w.must("CreateTest", err)
	return e
}

// testRecentBehindTests adds many test events before, between and after the others.
func testRecentBehindTests(w *world) {
	sc := w.addScene()
	var want []formsvc.Event
	for range 3 {
		for range 60 {
			w.addTest(&sc.hook)
		}
		_, e := w.addResponse(&sc.campaign)
		want = append(want, e)
	}
	for range 70 {
		w.addTest(&sc.hook)
	}
	for limit := 1; limit <= 4; limit++ {
		w.same("newest events", w.recent(sc.account.ID, limit), newestOf(want, limit))
	}
}

// testEventBytes reads payloads that don't all fit.
func testEventBytes(w *world) {
	sc := w.addScene()
	r := w.newResponse(&sc.campaign)
	const most = formsvc.DefaultEventBytes
	var events []formsvc.Event
	for i, size := range []int{1, most - 1, 1, most + 1, 0, most / 2, most / 2} {
		e := w.newEvent(&r)
		e.Payload = bytes.Repeat([]byte{'a' + byte(i)}, size)
		events = append(events, e)
	}
	w.must("CreateResponse", w.create(r, events[:2]...))
	w.same("as much as fits", w.about(&r, 100), events[:2])
	w.same("as much as fits", w.recent(sc.account.ID, 100), newestOf(events[:2], 2))
	for n := 3; n <= len(events); n++ {
		_, err := w.store.UpdateResponse(w.ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			return formsvc.Change{Events: events[n-1 : n]}, nil
		})
		w.must("UpdateResponse", err)
		w.same("the oldest that fit", w.about(&r, 100), events[:2])
		newest := map[int]int{3: 2, 4: 1, 5: 1, 6: 2, 7: 3}[n]
		w.same("the newest that fit", w.recent(sc.account.ID, 100), newestOf(events[:n], newest))
	}
}

package storagetest

import (
	"bytes"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func eventTests() []test {
	return []test{
		{"read by identifier", testEvent},
		{"newest events", testRecentEvents},
		{"newest events among test events", testRecentBehindTests},
		{"newest events of types and campaigns", testRecentChosen},
		{"events of a response", testEventsAbout},
		{"events of responses with the same identifier", testEventsAboutTwins},
		{"events of a deleted response", testEventsAboutGone},
		{"pages end at a byte limit", testEventBytes},
		{"results are copied", testEventsCopied},
	}
}

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

// wantEvent fails the test unless the store has that event.
func (w *world) wantEvent(want *formsvc.Event) {
	w.Helper()
	got, err := w.store.Event(w.ctx, want.AccountID, want.ID)
	w.must("Event", err)
	w.same("event", got, *want)
}

// addTest adds a test event for a webhook.
func (w *world) addTest(hook *formsvc.Webhook) formsvc.Event {
	w.Helper()
	e := w.newTestEvent(hook.AccountID)
	_, err := w.store.CreateTest(w.ctx, webhookKey(hook), e, nil)
	w.must("CreateTest", err)
	return e
}

// raise updates a response and raises n events, of all types in turn.
func (w *world) raise(r *formsvc.Response, n int) []formsvc.Event {
	w.Helper()
	types := webhook.EventTypes()
	events := make([]formsvc.Event, n)
	for i := range events {
		events[i] = w.newEvent(r)
		events[i].Type = types[i%len(types)]
	}
	_, err := w.store.UpdateResponse(w.ctx, keyOf(r), func(r *formsvc.Response) (formsvc.Change, error) {
		r.Version++
		return formsvc.Change{Events: events}, nil
	})
	w.must("UpdateResponse", err)
	return events
}

func testEvent(w *world) {
	sc, other := w.addScene(), w.addScene()
	r := w.newResponse(&sc.campaign)
	events := w.eventsOfAllTypes(&r)
	fine := time.Date(2026, 7, 1, 1, 2, 3, 999_999_999, time.FixedZone("east", 5*3600))
	events[0].CreatedAt, events[0].Payload = fine, []byte("\x00\xff")
	events[1].Payload = nil
	w.must("CreateResponse", w.create(r, events...))
	events[0].CreatedAt = time.Date(2026, 6, 30, 20, 2, 3, 999_999_000, time.UTC)
	events = append(events, w.raise(&r, 2)...)
	events = append(events, w.addTest(&sc.hook))
	for i := range events {
		w.wantEvent(&events[i])
		_, err := w.store.Event(w.ctx, other.account.ID, events[i].ID)
		w.wantError("Event of another account", err, formsvc.ErrNotFound)
	}
	w.prune(nextDay().Add(365*24*time.Hour), 100)
	for i := range events {
		_, err := w.store.Event(w.ctx, sc.account.ID, events[i].ID)
		w.wantError("Event that was pruned", err, formsvc.ErrNotFound)
	}
}

// testRecentEvents has transactions with one and with several events, with test events and another account's events
// between them. One event has an earlier time than those before.
func testRecentEvents(w *world) {
	sc, other := w.addScene(), w.addScene()
	w.same("newest events of an account without any", w.recent(sc.account.ID, 10), []formsvc.Event{})
	early := w.newEvent(&formsvc.Response{})
	var want, others []formsvc.Event
	r, e := w.addResponse(&sc.campaign)
	want = append(want, e)
	for range 4 {
		want = append(want, w.raise(&r, 3)...)
		w.addTest(&sc.hook)
		_, theirs := w.addResponse(&other.campaign)
		others = append(others, theirs)
		_, e := w.addResponse(&sc.campaign)
		want = append(want, e)
	}
	late := w.newResponse(&sc.campaign)
	e = w.newEvent(&late)
	e.ID, e.CreatedAt = early.ID, early.CreatedAt
	w.must("CreateResponse", w.create(late, e))
	want = append(want, e)
	w.addTest(&sc.hook)
	for _, limit := range []int{-1, 0, 1, 2, 5, len(want) - 1, len(want), len(want) + 1, 100} {
		w.same("newest events", w.recent(sc.account.ID, limit), newestOf(want, max(limit, 0)))
	}
	w.same("newest events of another account", w.recent(other.account.ID, 100), newestOf(others, 100))
	w.same("newest events of an account without any", w.recent(w.addAccount().ID, 100), []formsvc.Event{})
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

// testRecentChosen filters the events of two campaigns and another account.
func testRecentChosen(w *world) {
	sc, other := w.addScene(), w.addScene()
	second := w.addCampaign(sc.account.ID)
	types := webhook.EventTypes()
	var all []formsvc.Event
	for range 3 {
		all = append(all, w.addEvents(&sc.campaign, types...)...)
		all = append(all, w.addEvents(&second, types[1:]...)...)
		w.addEvents(&other.campaign, types...)
		w.addTest(&sc.hook)
	}
	for _, campaign := range []formsvc.ID{"", sc.campaign.ID, second.ID, other.campaign.ID, w.nextID(), "nope"} {
		for _, chosen := range [][]formsvc.EventType{nil, types[:1], types[4:], {types[3], types[1]}} {
			var want []formsvc.Event
			for i := range all {
				if (campaign == "" || all[i].CampaignID == campaign) && (chosen == nil || slices.Contains(chosen, all[i].Type)) {
					want = append(want, all[i])
				}
			}
			for _, limit := range []int{1, 2, 100} {
				got, err := w.store.RecentEvents(w.ctx, formsvc.RecentQuery{
					AccountID: sc.account.ID, CampaignID: campaign, Types: chosen, Limit: limit,
				})
				w.must("RecentEvents", err)
				w.same("newest of "+string(campaign), got, newestOf(want, limit))
			}
		}
	}
}

// testEventsAbout raises events with the creation of a response and with every other change. Events of other responses
// lie between them.
func testEventsAbout(w *world) {
	sc := w.addScene()
	neighbour, first := w.addResponse(&sc.campaign)
	early := w.nextID()
	r := w.newResponse(&sc.campaign)
	want := []formsvc.Event{w.newEvent(&r), w.newEvent(&r), w.newEvent(&r)}
	w.must("CreateResponse", w.create(r, want...))
	theirs := []formsvc.Event{first}
	for range 3 {
		want = append(want, w.raise(&r, 2)...)
		w.addTest(&sc.hook)
		theirs = append(theirs, w.raise(&neighbour, 1)...)
		uploaded, signed := w.newEvent(&r), w.newEvent(&r)
		w.must("CreateFile", w.createFile(w.newFile(&r), uploaded))
		w.must("CreateSignature", w.createSignature(w.newSignature(&r), signed))
		want = append(want, uploaded, signed)
	}
	late := w.newEvent(&r) // its identifier is older than those before
	late.ID = early
	w.must("CreateFile", w.createFile(w.newFile(&r), late))
	want = append(want, late)
	for _, limit := range []int{-1, 0, 1, 3, 4, len(want) - 1, len(want), len(want) + 1, 1000} {
		w.same("events about a response", w.about(&r, limit), want[:min(max(limit, 0), len(want))])
	}
	w.same("events about another response", w.about(&neighbour, 100), theirs)
	silent := w.newResponse(&sc.campaign)
	w.must("CreateResponse", w.create(silent))
	w.same("events about a response without any", w.about(&silent, 100), []formsvc.Event{})
	w.same("events after the first one", w.raise(&silent, 1), w.about(&silent, 100))
}

// testEventsAboutTwins has responses with the same identifier in several campaigns and accounts, which the contract
// allows.
func testEventsAboutTwins(w *world) {
	sc, other := w.addScene(), w.addScene()
	second := w.addCampaign(sc.account.ID)
	id := w.nextID()
	var twins []formsvc.Response
	var want [][]formsvc.Event
	for _, c := range []*formsvc.Campaign{&sc.campaign, &second, &other.campaign} {
		r := w.newResponse(c)
		r.ID = id
		e := w.newEvent(&r)
		w.must("CreateResponse", w.create(r, e))
		twins, want = append(twins, r), append(want, []formsvc.Event{e})
	}
	for i := range twins {
		want[i] = append(want[i], w.raise(&twins[i], 2)...)
	}
	for i := range twins {
		w.same("events about one of several twins", w.about(&twins[i], 100), want[i])
		w.same("the first of them", w.about(&twins[i], 2), want[i][:2])
	}
}

// testHandlesEvents raises events through two stores in turn.
func testHandlesEvents(w *world) {
	stores := []Store{w.store, w.reopen(w.T, w.store)}
	sc := w.addScene()
	r, e := w.addResponse(&sc.campaign)
	want := []formsvc.Event{e}
	for i := range 8 {
		w.store = stores[i%2]
		want = append(want, w.raise(&r, 2)...)
		for _, store := range stores {
			w.store = store
			w.same("newest events through either store", w.recent(sc.account.ID, 100), newestOf(want, 100))
			w.same("events about a response through either store", w.about(&r, 100), want)
		}
	}
}

func testEventsAboutGone(w *world) {
	sc := w.addScene()
	r, old := w.addResponse(&sc.campaign)
	deleted, stays := w.addResponse(&sc.campaign)
	e := w.raise(&r, 1)[0]
	_, err := w.store.Erase(w.ctx, formsvc.Erasing{AccountID: sc.account.ID, Events: []formsvc.ID{old.ID}}, formsvc.Change{})
	w.must("Erase", err)
	w.same("events about a response after Erase", w.about(&r, 100), []formsvc.Event{e})
	_, err = w.store.DeleteResponse(w.ctx, keyOf(&deleted), nil)
	w.must("DeleteResponse", err)
	_, err = w.store.EventsAbout(w.ctx, keyOf(&deleted), 100)
	w.wantError("EventsAbout a response that was deleted", err, formsvc.ErrNotFound)
	w.wantEvent(&stays)
	w.same("newest events", w.recent(sc.account.ID, 100), []formsvc.Event{e, stays})
	w.prune(nextDay().Add(365*24*time.Hour), 100)
	w.same("events about a response after Prune", w.about(&r, 100), []formsvc.Event{})
	w.same("newest events after Prune", w.recent(sc.account.ID, 100), []formsvc.Event{})
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

func testEventsCopied(w *world) {
	sc := w.addScene()
	r, e := w.addResponse(&sc.campaign)
	spoil := func(events []formsvc.Event) { events[0].Payload[0] = 'X' }
	for range 2 {
		got, err := w.store.Event(w.ctx, sc.account.ID, e.ID)
		w.must("Event", err)
		w.same("event", got, e)
		spoil([]formsvc.Event{got})
		recent, about := w.recent(sc.account.ID, 1), w.about(&r, 1)
		w.same("newest events", recent, []formsvc.Event{e})
		w.same("events about a response", about, []formsvc.Event{e})
		spoil(recent)
		spoil(about)
	}
}

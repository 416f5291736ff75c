package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func feedTests() []test {
	return []test{
		{"events come in commit order", testFeedOrder},
		{"no test events and none of other accounts", testFeedApart},
		{"pages are complete", testFeedPages},
		{"filter by type", testFeedTypes},
		{"filter by campaign", testFeedCampaigns},
		{"pages end at a byte limit", testFeedBytes},
		{"default and largest page", testFeedSizes},
		{"empty feed", testFeedEmpty},
		{"results are copied", testFeedCopied},
		{"readers miss nothing while many write", testFeedRace},
	}
}

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

// rest returns the pages after a position, and the last position. A query for all types must report more only if more
// events follow.
func (w *world) rest(q formsvc.EventQuery) ([][]formsvc.Event, formsvc.EventPosition) {
	w.Helper()
	var pages [][]formsvc.Event
	for more := false; ; {
		page := w.events(q)
		if more && len(page.Items) == 0 && len(q.Types) == 0 {
			w.Errorf("Events: a page said that more follow, and none did")
		}
		q.After, more = page.Next, page.More
		if len(page.Items) > 0 {
			pages = append(pages, page.Items)
		}
		if !page.More {
			return pages, q.After
		}
	}
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

// testFeedOrder has transactions with one and with several events, with and without a subscribed webhook. Some events
// have an earlier time than those before.
func testFeedOrder(w *world) {
	sc := w.addScene()
	var want []formsvc.Event
	early := []formsvc.Event{w.newEvent(&formsvc.Response{}), w.newEvent(&formsvc.Response{})}
	r, e := w.addResponse(&sc.campaign)
	want = append(want, e)
	for i := range 3 {
		var events []formsvc.Event
		_, err := w.store.UpdateResponse(w.ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			events = w.eventsOfAllTypes(r) // oldest first
			return formsvc.Change{Events: events}, nil
		})
		w.must("UpdateResponse", err)
		want = append(want, events...)
		if i < len(early) {
			r := w.newResponse(&sc.campaign)
			late := w.newEvent(&r)
			late.ID, late.CreatedAt = early[len(early)-1-i].ID, early[len(early)-1-i].CreatedAt
			w.must("CreateResponse", w.create(r, late))
			want = append(want, late)
		}
		if i == 1 {
			w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
		}
	}
	got, next := w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &want[len(want)-1])
	w.same("events", got, want)
	after := w.addEvents(&sc.campaign, webhook.ResponseCreated)
	got, _ = w.feed(formsvc.EventQuery{AccountID: sc.account.ID, After: next}, &after[0])
	w.same("events that came later", got, after)
}

func testFeedApart(w *world) {
	sc, other := w.addScene(), w.addScene()
	var want, others []formsvc.Event
	for range 4 {
		want = append(want, w.addEvents(&sc.campaign, webhook.ResponseCreated)...)
		others = append(others, w.addEvents(&other.campaign, webhook.ResponseCreated)...)
		_, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), w.newTestEvent(sc.account.ID), nil)
		w.must("CreateTest", err)
	}
	want = append(want, w.addEvents(&sc.campaign, webhook.ResponseCreated)...)
	got, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &want[len(want)-1])
	w.same("events", got, want)
	got, _ = w.feed(formsvc.EventQuery{AccountID: other.account.ID}, &others[len(others)-1])
	w.same("events of the other account", got, others)
}

// wantPages fails the test unless the matching events come in the right pages.
func (w *world) wantPages(q formsvc.EventQuery, events []formsvc.Event) formsvc.EventPosition {
	w.Helper()
	var want [][]string
	var page []string
	size, limits := 0, q.Clamped()
	for i := range events {
		e := &events[i]
		if len(q.Types) > 0 && !slices.Contains(q.Types, e.Type) || q.CampaignID != "" && q.CampaignID != e.CampaignID {
			continue
		}
		if len(page) == limits.Limit || len(page) > 0 && size+len(e.Payload) > limits.MaxBytes {
			want, page, size = append(want, page), nil, 0
		}
		page = append(page, string(e.ID))
		size += len(e.Payload)
	}
	if len(page) > 0 {
		want = append(want, page)
	}
	pages, next := w.rest(q)
	got := make([][]string, len(pages))
	for i := range pages {
		for j := range pages[i] {
			got[i] = append(got[i], string(pages[i][j].ID))
		}
	}
	w.same(fmt.Sprintf("pages of %v, limit %d, %d bytes", q.Types, q.Limit, q.MaxBytes), got, want)
	return next
}

func testFeedPages(w *world) {
	sc := w.addScene()
	types := webhook.EventTypes()
	events := w.addEvents(&sc.campaign, slices.Concat(types, types, types)...)
	q := formsvc.EventQuery{AccountID: sc.account.ID}
	w.feed(q, &events[len(events)-1])
	for _, q.Limit = range []int{1, 2, 7, len(events) - 1, len(events), len(events) + 1, formsvc.MaxLimit} {
		next := w.wantPages(q, events)
		if page := w.events(formsvc.EventQuery{AccountID: sc.account.ID, After: next}); len(page.Items) != 0 || page.More {
			w.Errorf("after the last event come %d more", len(page.Items))
		}
	}
	// A position stays valid, and can be read any number of times.
	first := w.events(formsvc.EventQuery{AccountID: sc.account.ID, Limit: 5})
	more := w.addEvents(&sc.campaign, types...)
	for range 2 {
		got, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID, After: first.Next}, &more[len(more)-1])
		w.same("events after the fifth", got, slices.Concat(events[5:], more))
	}
}

// testFeedTypes also checks that positions move past events of other types, so that they aren't scanned again.
func testFeedTypes(w *world) {
	sc := w.addScene()
	types := webhook.EventTypes()
	random := rand.New(rand.NewPCG(30, 31))
	var chosen []formsvc.EventType
	for range 60 {
		chosen = append(chosen, pick(random, types[:4]...))
	}
	events := w.addEvents(&sc.campaign, chosen...)
	w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &events[len(events)-1])
	for _, filter := range [][]formsvc.EventType{
		types[:1], types[3:4], {types[2], types[0]}, {types[5], types[1], types[5]}, types, types[4:], types[5:],
	} {
		for _, limit := range []int{1, 3, 100} {
			q := formsvc.EventQuery{AccountID: sc.account.ID, Types: filter, Limit: limit}
			q.After = w.wantPages(q, events)
			page := w.events(q) // no match: the position is where the scan ended
			if page := w.events(formsvc.EventQuery{AccountID: sc.account.ID, After: page.Next}); len(page.Items) != 0 {
				w.Errorf("types %v: %d events are not passed, though none of them is of these types", filter, len(page.Items))
			}
		}
	}
	// A reader that waits for one type misses no event of it.
	_, q := w.rest(formsvc.EventQuery{AccountID: sc.account.ID, Types: types[5:]})
	more := w.addEvents(&sc.campaign, types[0], types[5], types[1], types[5])
	got, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID, Types: types[5:], After: q}, &more[3])
	w.same("events of the type", got, []formsvc.Event{more[1], more[3]})
}

// testFeedCampaigns checks that positions move past events of other campaigns too.
func testFeedCampaigns(w *world) {
	sc := w.addScene()
	second, silent := w.addCampaign(sc.account.ID), w.addCampaign(sc.account.ID)
	types := webhook.EventTypes()
	var events []formsvc.Event
	for range 10 {
		events = append(events, w.addEvents(&sc.campaign, types[0], types[1])...)
		events = append(events, w.addEvents(&second, types[1], types[2])...)
	}
	w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &events[len(events)-1])
	for _, campaign := range []formsvc.ID{sc.campaign.ID, second.ID, silent.ID, w.nextID(), "nope"} {
		for _, filter := range [][]formsvc.EventType{nil, types[1:2], types[2:]} {
			for _, limit := range []int{1, 3, 100} {
				q := formsvc.EventQuery{AccountID: sc.account.ID, CampaignID: campaign, Types: filter, Limit: limit}
				q.After = w.wantPages(q, events)
				if page := w.events(formsvc.EventQuery{AccountID: sc.account.ID, After: w.events(q).Next}); len(page.Items) != 0 {
					w.Errorf("campaign %q: %d events are not passed, though none is asked for", campaign, len(page.Items))
				}
			}
		}
	}
}

func testFeedBytes(w *world) {
	sc := w.addScene()
	types := webhook.EventTypes()
	r := w.newResponse(&sc.campaign)
	var events []formsvc.Event
	for i, size := range []int{10, 20, 30, 100, 1, 1, 0, 0, 99, 60, 40, 1, 1_000_000, 1_000_000, 1_000_000, 1_000_000, 194_304, 1} {
		e := w.newEvent(&r)
		e.Type = types[i%2]
		e.Payload = slices.Repeat([]byte{byte(i)}, size)
		events = append(events, e)
	}
	w.must("CreateResponse", w.create(r, events...))
	q := formsvc.EventQuery{AccountID: sc.account.ID, Limit: 100}
	w.feed(q, &events[len(events)-1])
	for i, filter := range [][]formsvc.EventType{nil, types[:1], types[1:2]} {
		for j, most := range []int{-1, 0, 1, 30, 59, 60, 61, 100, 1_000_000, 2_000_001, 1 << 40} {
			limit := []int{3, 1, 0}[(i+j)%3]
			w.wantPages(formsvc.EventQuery{AccountID: sc.account.ID, Types: filter, Limit: limit, MaxBytes: most}, events)
		}
	}
}

func testFeedSizes(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	var events []formsvc.Event
	for range (formsvc.MaxLimit + 10) / 10 {
		r := w.newResponse(&c)
		var unit []formsvc.Event
		for range 10 {
			unit = append(unit, w.newEvent(&r))
		}
		w.must("CreateResponse", w.create(r, unit...))
		events = append(events, unit...)
	}
	w.feed(formsvc.EventQuery{AccountID: c.AccountID, Limit: formsvc.MaxLimit}, &events[len(events)-1])
	for _, limit := range []int{-1, 0, formsvc.MaxLimit, formsvc.MaxLimit + 1, 1 << 30} {
		w.wantPages(formsvc.EventQuery{AccountID: c.AccountID, Limit: limit}, events)
	}
}

func testFeedEmpty(w *world) {
	sc, other := w.addScene(), w.addScene()
	w.addEvents(&other.campaign, webhook.EventTypes()...)
	for _, account := range []formsvc.ID{sc.account.ID, w.nextID(), "", "nope"} {
		page := w.events(formsvc.EventQuery{AccountID: account})
		if len(page.Items) != 0 || page.More {
			w.Errorf("Events of account %q: %+v, want none", account, page)
		}
	}
	_, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), w.newTestEvent(sc.account.ID), nil)
	w.must("CreateTest", err)
	_, next := w.rest(formsvc.EventQuery{AccountID: sc.account.ID})
	events := w.addEvents(&sc.campaign, webhook.ResponseCreated, webhook.ResponseUpdated)
	got, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID, After: next}, &events[1])
	w.same("the first events", got, events)
}

func testFeedCopied(w *world) {
	sc := w.addScene()
	events := w.addEvents(&sc.campaign, webhook.ResponseCreated)
	q := formsvc.EventQuery{AccountID: sc.account.ID}
	got, _ := w.feed(q, &events[0])
	got[0].Payload[0] = 'X'
	got, _ = w.feed(q, &events[0])
	w.same("events after the caller changed what it had got", got, events)
}

func testFeedRace(w *world) { w.wantFollowed([]Store{w.store}) }

// wantFollowed follows an account's events while many goroutines write. Each event comes once, and later readers get
// the same order.
func (w *world) wantFollowed(stores []Store) {
	w.Helper()
	sc, other := w.addScene(), w.addScene()
	var (
		writers sync.WaitGroup
		mu      sync.Mutex
		written = map[formsvc.ID]bool{}
	)
	for i := range 8 {
		random := rand.New(rand.NewPCG(32, uint64(i)))
		writers.Go(func() {
			for range 30 {
				store, c := stores[random.IntN(len(stores))], pick(random, &sc.campaign, &sc.campaign, &other.campaign)
				r := w.newResponse(c)
				events := []formsvc.Event{w.newEvent(&r), w.newEvent(&r)}[:1+random.IntN(2)]
				w.check("CreateResponse", store.CreateResponse(w.ctx, r, 1, formsvc.Change{Events: events}))
				mu.Lock()
				for _, e := range events {
					if c == &sc.campaign {
						written[e.ID] = true
					}
				}
				mu.Unlock()
			}
		})
	}
	last := make(chan formsvc.Event, 1)
	go func() {
		writers.Wait()
		r := w.newResponse(&sc.campaign)
		e := w.newEvent(&r)
		w.check("CreateResponse", w.create(r, e))
		mu.Lock()
		written[e.ID] = true
		mu.Unlock()
		last <- e
	}()
	seen := w.follow(&sc.account, stores, last)
	for _, e := range seen {
		if !written[e.ID] {
			w.Errorf("event %s came twice, or is not of the account", e.ID)
		}
		delete(written, e.ID)
	}
	if len(written) != 0 {
		w.Errorf("%d events never came, %d did", len(written), len(seen))
	}
	again, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &seen[len(seen)-1])
	w.same("events, read once more", again, seen)
}

// follow reads events through the stores in turn, until the last one is known and read.
func (w *world) follow(a *formsvc.Account, stores []Store, last <-chan formsvc.Event) []formsvc.Event {
	w.Helper()
	random := rand.New(rand.NewPCG(33, 0))
	q := formsvc.EventQuery{AccountID: a.ID}
	var seen []formsvc.Event
	for {
		select {
		case e := <-last:
			if slices.ContainsFunc(seen, func(s formsvc.Event) bool { return s.ID == e.ID }) {
				return seen
			}
			rest, _ := w.feed(q, &e)
			return append(seen, rest...)
		default:
		}
		q.Limit = 1 + random.IntN(9)
		page, err := stores[random.IntN(len(stores))].Events(w.ctx, q)
		w.must("Events", err)
		seen = append(seen, page.Items...)
		q.After = page.Next
	}
}

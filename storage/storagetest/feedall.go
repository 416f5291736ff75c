package storagetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func wholeFeedTests() []test {
	return []test{
		{"all accounts in commit order", testWholeFeed},
		{"all accounts by type and campaign", testWholeFeedChosen},
		{"readers of all accounts miss nothing", testWholeFeedRace},
	}
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

func testWholeFeedChosen(w *world) {
	scenes := []*scene{w.addScene(), w.addScene()}
	all := w.addMixed(scenes, 9)
	w.wholeFeed(formsvc.EventQuery{}, all[len(all)-1].ID)
	types := webhook.EventTypes()
	for _, q := range []formsvc.EventQuery{
		{Types: types[:1]},
		{Types: types[1:3], Limit: 2},
		{CampaignID: scenes[1].campaign.ID},
		{CampaignID: scenes[0].campaign.ID, Types: types[:2], Limit: 1},
	} {
		var want []formsvc.Event
		for i := range all {
			e := &all[i]
			if (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) && (q.CampaignID == "" || q.CampaignID == e.CampaignID) {
				want = append(want, *e)
			}
		}
		got, _ := w.wholeFeed(q, want[len(want)-1].ID)
		w.same("chosen events of all accounts", got, want)
	}
}

// testWholeFeedRace follows the feed while many goroutines write in several accounts: each event comes once.
func testWholeFeedRace(w *world) {
	scenes := []*scene{w.addScene(), w.addScene(), w.addScene()}
	var (
		writers sync.WaitGroup
		mu      sync.Mutex
		written = map[formsvc.ID]int{}
	)
	for i := range 6 {
		writers.Go(func() {
			for n := range 20 {
				r := w.newResponse(&scenes[(i+n)%len(scenes)].campaign)
				e := w.newEvent(&r)
				mu.Lock()
				written[e.ID]++
				mu.Unlock()
				w.check("CreateResponse", w.create(r, e))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		writers.Wait()
		close(done)
	}()
	var (
		seen []formsvc.Event
		q    = formsvc.EventQuery{Limit: 7}
	)
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
		}
		page, err := allEvents(w.ctx, w.store, q)
		w.must("AllEvents", err)
		seen, q.After = append(seen, page.Items...), page.Next
	}
	last := w.addEvents(&scenes[0].campaign, webhook.ResponseCreated)[0]
	written[last.ID]++
	rest, _ := w.wholeFeed(q, last.ID)
	for _, e := range append(seen, rest...) {
		if written[e.ID]--; written[e.ID] < 0 {
			w.Errorf("event %s came twice, or nobody wrote it", e.ID)
		}
	}
	for id, n := range written {
		if n > 0 {
			w.Errorf("event %s never came", id)
		}
	}
}

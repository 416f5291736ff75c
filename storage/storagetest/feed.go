package storagetest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// feed reads on from q.After until it finds that event. It returns all events up to there. A store may show an event late,
// for example while an older transaction is open.
func (w *world) feed(q formsvc.EventQuery, last formsvc.ID) (events []formsvc.Event) {
	w.Helper()
	guard, stop := context.WithTimeout(w.ctx, 2*time.Minute)
	defer stop()
	for guard.Err() == nil {
		items := w.page(w.store, &q)
		events = append(events, items...)
		if slices.ContainsFunc(items, func(e formsvc.Event) bool { return e.ID == last }) {
			return events
		}
		if len(items) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	w.Fatalf("Events: %d events came, and event %s did not", len(events), last)
	return nil
}

// page returns a page of events, without an AccountID of all accounts, and moves on to the next. It checks that its position moves on.
func (w *world) page(s Store, q *formsvc.EventQuery) []formsvc.Event {
	w.Helper()
	read := s.Events
	if q.AccountID == "" {
		read = s.AllEvents
	}
	page := must(read(w.ctx, *q))(w, "Events")
	if page.Next == q.After && (len(page.Items) > 0 || page.More) {
		w.Fatalf("Events: a page of %d events (more: %t) leads back to where it began", len(page.Items), page.More)
	}
	if limit := q.Clamped().Limit; len(page.Items) > limit {
		w.Errorf("Events: %d events, limit %d", len(page.Items), limit)
	}
	q.After = page.Next
	return page.Items
}

// testWholeFeed reads the events of several accounts, with test events between them.
func testWholeFeed(w *world) {
	scenes := []*scene{w.addScene(), w.addScene(), w.addScene()}
	var want []formsvc.Event
	for i := range 20 {
		sc := scenes[i%3]
		if i%4 == 0 {
			w.must("a test event", w.addTest(w.newTestEvent(webhookKey(&sc.hook))))
		}
		r := w.newResponse(&sc.campaign)
		e := w.newEvent(&r)
		e.Type = webhook.EventTypes()[i%4]
		w.must("CreateResponse", w.create(r, e))
		want = append(want, e)
	}
	for _, limit := range []int{0, 1, 2, len(want) - 1, len(want), len(want) + 1} {
		q := formsvc.EventQuery{Limit: limit}
		w.same("events of all accounts", w.feed(q, want[len(want)-1].ID), want)
	}
	for _, cursor := range []formsvc.Cursor{".", "1.", ".1", "1.2.3", "+1.2", "01.2", "1.2 ", "a.b", "9223372036854775808.0", "\x00"} {
		_, err := w.store.Events(w.ctx, formsvc.EventQuery{AccountID: scenes[0].account.ID, After: cursor})
		w.wantError("Events after "+string(cursor), err, formsvc.ErrInvalid)
		w.wantError("AllEvents after "+string(cursor), errorOf(w.store.AllEvents(w.ctx, formsvc.EventQuery{After: cursor})), formsvc.ErrInvalid)
	}
	q := formsvc.EventQuery{Types: webhook.EventTypes()[3:4], Limit: 2}
	w.same("events of a type", w.feed(q, want[19].ID), []formsvc.Event{want[3], want[7], want[11], want[15], want[19]})
}

// followed follows the events of an account, and of all, while many clients create responses and change one of them in
// every way that raises events. The payload of an event about that response is its version. Each event must come once, and
// those about the response in the order of its changes.
func (w *world) followed(stores []Store) {
	sc, other := w.addScene(), w.addScene()
	r := w.newResponse(&sc.campaign)
	w.must("CreateResponse", w.create(r, w.versionEvent(&r, webhook.ResponseCreated)))
	var clients sync.WaitGroup
	var raised atomic.Int64 // by the account
	for i := range 40 {
		random := rand.New(rand.NewPCG(34, uint64(i)))
		clients.Go(func() {
			for range 6 {
				store, way := stores[random.IntN(len(stores))], random.IntN(6)
				if way > 3 {
					raised.Add(1)
					w.check("a change", errorOf(w.changeOnce(store, &r, way)))
					continue
				}
				in := []*scene{sc, sc, sc, other}[way]
				fresh := w.newResponse(&in.campaign)
				events := []formsvc.Event{w.newEvent(&fresh), w.newEvent(&fresh)}
				w.check("CreateResponse", store.CreateResponse(w.ctx, fresh, 1, formsvc.Change{Events: events}))
				if in == sc {
					raised.Add(2)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		clients.Wait()
		close(ended)
	}()
	var seen, all []formsvc.Event
	one, whole := formsvc.EventQuery{AccountID: sc.account.ID, Limit: 7}, formsvc.EventQuery{Limit: 5}
	for n, changing := 0, true; changing; n++ {
		select {
		case <-ended:
			changing = false
		default:
		}
		seen, all = append(seen, w.page(stores[n%len(stores)], &one)...), append(all, w.page(w.store, &whole)...)
	}
	last := must(w.changeOnce(w.store, &r, 4))(w, "the last change")
	seen, all = append(seen, w.feed(one, last.ID)...), append(all, w.feed(whole, last.ID)...)
	w.wantFollowed(sc, &r, seen, int(raised.Load())+2)
	w.same("events, read once more", w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, last.ID), seen)
	w.same("events of all accounts", slices.DeleteFunc(all, func(e formsvc.Event) bool { return e.AccountID != sc.account.ID }), seen)
}

// wantFollowed fails the test unless the events are that many, each is there once, and those about the response are in the
// order of its versions: an update has the next version, and any other event the same.
func (w *world) wantFollowed(sc *scene, r *formsvc.Response, events []formsvc.Event, want int) {
	w.Helper()
	known := make(map[formsvc.ID]bool)
	var about []formsvc.Event
	version := int64(1)
	for i := range events {
		e := &events[i]
		if known[e.ID] || e.AccountID != sc.account.ID {
			w.Errorf("event %s came twice, or is not of the account", e.ID)
		}
		known[e.ID] = true
		if e.ResponseID != r.ID {
			continue
		}
		if e.Type == webhook.ResponseUpdated {
			version++
		}
		if string(e.Payload) != strconv.FormatInt(version, 10) {
			w.Fatalf("an event of version %s comes with version %d", e.Payload, version)
		}
		about = append(about, *e)
	}
	if len(events) != want {
		w.Errorf("%d events came, want %d", len(events), want)
	}
	got := must(w.store.EventsAbout(w.ctx, r.Key(), len(events)))(w, "EventsAbout")
	w.same("events about the response", got, about)
	got = w.recent(sc, len(events)+1)
	slices.Reverse(got)
	w.same("newest events", got, events)
}

// versionEvent returns an event whose payload is the version of the response.
func (w *world) versionEvent(r *formsvc.Response, t formsvc.EventType) formsvc.Event {
	e := w.newEvent(r)
	e.Type, e.Payload = t, strconv.AppendInt(nil, r.Version, 10)
	return e
}

// changeOnce adds a file or a signature to a response, or updates it.
func (w *world) changeOnce(store Store, r *formsvc.Response, way int) (e formsvc.Event, err error) {
	raise := func(r *formsvc.Response, t formsvc.EventType) (formsvc.Change, error) {
		e = w.versionEvent(r, t)
		return formsvc.Change{Events: []formsvc.Event{e}}, nil
	}
	switch f := w.newFile(r); {
	case way == 4:
		_, err = store.UpdateResponse(w.ctx, r.Key(), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			return raise(r, webhook.ResponseUpdated)
		})
	case f.ID[len(f.ID)-1]%2 == 0:
		err = store.CreateFile(w.ctx, f, func(r *formsvc.Response) (formsvc.Change, error) { return raise(r, webhook.FileUploaded) })
	default:
		_, err = store.CreateSignature(w.ctx, w.newSignature(r), func(r *formsvc.Response, _ *formsvc.Signature) (formsvc.Change, error) {
			return raise(r, webhook.SignatureCompleted)
		})
	}
	return e, err
}

// recentBehindTests adds many test events before, between and after the others.
func recentBehindTests(w *world) any {
	sc := w.addScene()
	for i := range 250 {
		w.must("a test event", w.addTest(w.newTestEvent(webhookKey(&sc.hook))))
		if i%60 == 59 {
			w.addResponse(&sc.campaign)
		}
	}
	var got []any
	for limit := range 6 {
		got = append(got, w.recent(sc, limit))
	}
	return got
}

func (w *world) recent(sc *scene, limit int) []formsvc.Event {
	w.Helper()
	return must(w.store.RecentEvents(w.ctx, formsvc.RecentQuery{AccountID: sc.account.ID, Limit: limit}))(w, "RecentEvents")
}

// eventBytes reads payloads that don't all fit.
func eventBytes(w *world) any {
	sc := w.addScene()
	r := w.newResponse(&sc.campaign)
	var got []any
	const most = formsvc.DefaultEventBytes
	for i, size := range []int{1, most - 1, 1, most + 1, 0, most / 2, most / 2} {
		e := w.newEvent(&r)
		if e.Payload = bytes.Repeat([]byte{'a' + byte(i)}, size); i == 0 {
			w.must("CreateResponse", w.create(r, e))
		} else {
			w.must("UpdateResponse", w.update(w.ctx, r.Key(), e))
		}
		about := must(w.store.EventsAbout(w.ctx, r.Key(), 100))(w, "EventsAbout")
		got = append(got, w.recent(sc, 100), about)
	}
	return got
}

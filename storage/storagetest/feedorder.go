package storagetest

import (
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func feedOrderTests() []test {
	return []test{
		{"changes of a response come in order", testFeedOfOneResponse},
	}
}

// The number of clients that change one response concurrently, and of changes by each.
const (
	changers = 50
	changes  = 4
)

func testFeedOfOneResponse(w *world) { w.wantChangesInOrder([]Store{w.store}) }

// wantChangesInOrder has many clients change one response in every way that raises events, while a reader follows the
// feed. The payload of each event is the version of the response at that moment. In every list of events the versions
// are in order, and each event comes once.
func (w *world) wantChangesInOrder(stores []Store) {
	w.Helper()
	sc := w.addScene()
	r := w.newResponse(&sc.campaign)
	w.must("CreateResponse", w.create(r, w.versionEvent(&r, webhook.ResponseCreated)))
	var clients sync.WaitGroup
	for i := range changers {
		random := rand.New(rand.NewPCG(34, uint64(i)))
		clients.Go(func() {
			for range changes {
				_, err := w.changeOnce(stores[random.IntN(len(stores))], &r, random.IntN(4))
				w.check("a change", err)
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
	for changing := true; changing; {
		select {
		case <-ended:
			changing = false
		default:
		}
		page := w.events(one)
		seen, one.After = append(seen, page.Items...), page.Next
		page, err := allEvents(w.ctx, stores[len(stores)-1], whole)
		w.must("AllEvents", err)
		all, whole.After = append(all, page.Items...), page.Next
	}
	last, err := w.changeOnce(w.store, &r, 0)
	w.must("the last change", err)
	rest, _ := w.feed(one, &last)
	seen = append(seen, rest...)
	rest, _ = w.wholeFeed(whole, last.ID)

	w.wantVersionsInOrder(seen)
	w.same("events of all accounts", append(all, rest...), seen)
	about, err := w.store.EventsAbout(w.ctx, keyOf(&r), len(seen)+1)
	w.must("EventsAbout", err)
	w.same("events about the response", about, seen)
	w.same("newest events", w.recent(sc.account.ID, len(seen)+1), newestOf(seen, len(seen)))
}

// wantVersionsInOrder fails the test unless each event of the clients occurs once. An update has the version after that
// of the event before, and any other event has the same one.
func (w *world) wantVersionsInOrder(events []formsvc.Event) {
	w.Helper()
	known := make(map[formsvc.ID]bool)
	version, wrong := int64(1), 0
	for i := range events {
		e := &events[i]
		if known[e.ID] {
			w.Errorf("event %s came twice", e.ID)
		}
		known[e.ID] = true
		got, err := strconv.ParseInt(string(e.Payload), 10, 64)
		w.must("a payload", err)
		want := version
		if e.Type == webhook.ResponseUpdated {
			want++
		}
		if got != want {
			wrong++
		}
		version = got
	}
	if want := changers*changes + 2; len(known) != want || wrong > 0 {
		w.Errorf("%d events, %d of them not in the order of the changes; want %d, all in order", len(known), wrong, want)
	}
}

// versionEvent returns an event whose payload is the version of the response.
func (w *world) versionEvent(r *formsvc.Response, t formsvc.EventType) formsvc.Event {
	e := w.newEvent(r)
	e.Type, e.Payload = t, strconv.AppendInt(nil, r.Version, 10)
	return e
}

// changeOnce changes a response through a store: it adds a file or a signature, or updates it.
func (w *world) changeOnce(store Store, r *formsvc.Response, way int) (e formsvc.Event, err error) {
	raise := func(r *formsvc.Response, t formsvc.EventType) (formsvc.Change, error) {
		e = w.versionEvent(r, t)
		return formsvc.Change{Events: []formsvc.Event{e}}, nil
	}
	switch way {
	case 1:
		err = store.CreateFile(w.ctx, w.newFile(r), func(r *formsvc.Response) (formsvc.Change, error) {
			return raise(r, webhook.FileUploaded)
		})
	case 2:
		sig := w.newSignature(r)
		_, err = store.CreateSignature(w.ctx, sig, func(r *formsvc.Response, _ *formsvc.Signature) (formsvc.Change, error) {
			return raise(r, webhook.SignatureCompleted)
		})
	default:
		_, err = store.UpdateResponse(w.ctx, keyOf(r), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			return raise(r, webhook.ResponseUpdated)
		})
	}
	return e, err
}

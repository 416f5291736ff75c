package storagetest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

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

// The number of clients that change one response concurrently, and of changes by each.
const (
	changers = 50
	changes  = 4
)

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

// wantFileOrBar fails the test unless each identifier, wanted for a file and barred concurrently, ends as exactly one
// of the two, and the callers are told so. The stores share the same data.
func (w *world) wantFileOrBar(stores []Store) {
	w.Helper()
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	exist := 0
	const rounds = 10
	for range rounds {
		exist += w.fileOrBar(stores, &r)
	}
	if n := len(w.files(&r)); n != exist {
		w.Errorf("%d files are listed, and %d exist", n, exist)
	}
}

// fileOrBar creates a few files while two calls bar all of them, and returns how many exist afterwards.
func (w *world) fileOrBar(stores []Store, r *formsvc.Response) (exist int) {
	w.Helper()
	const n = 12
	var (
		ids     [n]formsvc.ID
		files   [n]formsvc.File
		events  [n]formsvc.Event
		created [n]error
		barred  [2]map[formsvc.ID]bool
	)
	for i := range n {
		files[i], events[i] = w.newFile(r), w.newEvent(r)
		ids[i] = files[i].ID
	}
	w.together(n+len(barred), func(i int) {
		store := stores[i%len(stores)]
		if i < n {
			created[i] = store.CreateFile(w.ctx, files[i], func(*formsvc.Response) (formsvc.Change, error) {
				return formsvc.Change{Events: events[i : i+1]}, nil
			})
			return
		}
		asked := ids
		if i > n { // in another order, to provoke deadlocks
			slices.Reverse(asked[:])
		}
		got, err := store.BarFiles(w.ctx, asked[:])
		w.check("BarFiles", err)
		barred[i-n] = set(got)
	})
	unknown, err := w.store.UnknownFiles(w.ctx, ids[:])
	w.must("UnknownFiles", err)
	free := set(unknown)
	for i, id := range ids {
		if free[id] == (created[i] == nil) || free[id] != barred[0][id] || free[id] != barred[1][id] {
			w.Errorf("CreateFile returned %v, two BarFiles told of it: %t and %t; the file exists: %t",
				created[i], barred[0][id], barred[1][id], !free[id])
		}
		if !free[id] {
			exist++
			continue
		}
		w.wantError("CreateFile of what was barred", created[i], formsvc.ErrConflict)
		w.noEvents("CreateFile of what was barred", events[i])
	}
	return exist
}

func (w *world) wantNoStrayFiles(stores []Store) {
	w.Helper()
	sc := w.addScene()
	const uploads, rounds = 12, 10
	for round := range rounds {
		r, _ := w.addResponse(&sc.campaign)
		list, created := make([]formsvc.File, uploads), make([]error, uploads)
		for i := range list {
			list[i] = w.newFile(&r)
		}
		var deleted []formsvc.ID
		w.together(uploads+1, func(i int) {
			store := stores[(i+round)%len(stores)]
			if i < uploads {
				created[i] = store.CreateFile(w.ctx, list[i], func(r *formsvc.Response) (formsvc.Change, error) {
					return formsvc.Change{Events: []formsvc.Event{w.newEvent(r)}}, nil
				})
				return
			}
			var err error
			deleted, err = store.DeleteResponse(w.ctx, keyOf(&r), nil)
			w.check("DeleteResponse", err)
		})
		named := set(deleted)
		for i := range list {
			if named[list[i].ID] != (created[i] == nil) {
				w.Errorf("CreateFile returned %v, and DeleteResponse named the file: %t", created[i], named[list[i].ID])
			}
			if created[i] != nil {
				w.wantError("CreateFile beside DeleteResponse", created[i], formsvc.ErrNotFound)
			}
		}
	}
	if files := w.allFiles(); len(files) != 0 {
		w.Errorf("%d files have no response", len(files))
	}
}

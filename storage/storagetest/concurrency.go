package storagetest

import (
	"sync"

	"github.com/formsvc/toolkit/formsvc"
)

// Numbers of concurrent workers and their calls.
const (
	writers = 64
	writes  = 20
)

func (w *world) writeMany(write func(writer, n int)) {
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := range writes {
				write(i, n)
			}
		})
	}
	all.Wait()
}

// together makes n calls concurrently and waits for them.
func (w *world) together(n int, call func(i int)) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			call(i)
		})
	}
	close(begin)
	all.Wait()
}

// testManyResponses creates responses of several accounts concurrently, so that stores that group creates must tell their
// webhooks apart.
func testManyResponses(w *world) {
	scenes := []*scene{w.addScene(), w.addScene(), w.addScene()}
	w.writeMany(func(writer, _ int) {
		r := w.newResponse(&scenes[writer%len(scenes)].campaign)
		if err := w.create(r, w.newEvent(&r)); err != nil {
			w.Errorf("CreateResponse: %v", err)
			return
		}
		got, err := w.store.Response(w.ctx, keyOf(&r))
		w.check("Response right after CreateResponse", err)
		w.same("response", got, r)
	})
	for i, sc := range scenes {
		w.wantCount(&sc.campaign, &sc.hook, int64(writes*((writers-i+len(scenes)-1)/len(scenes))))
	}
}

// testManyReads reads existing and unknown records concurrently, so that stores that batch reads must tell them apart.
func testManyReads(w *world) {
	scenes := []*scene{w.addScene(), w.addScene()}
	responses := make([]formsvc.Response, writes)
	for i := range responses {
		responses[i] = w.newResponse(&scenes[i%len(scenes)].campaign)
		w.check("CreateResponse", w.create(responses[i]))
	}
	w.writeMany(func(reader, n int) {
		r := &responses[(reader+n)%len(responses)]
		stranger := &scenes[(reader+n+1)%len(scenes)].campaign
		key := keyOf(r)
		switch reader % 4 {
		case 1:
			key.ID = w.nextID()
		case 2:
			key.CampaignID = stranger.ID
		case 3:
			key.AccountID = stranger.AccountID
		default:
			got, err := w.store.Response(w.ctx, key)
			w.check("Response", err)
			w.same("response", got, *r)
			return
		}
		_, err := w.store.Response(w.ctx, key)
		w.wantError("Response of what there isn't", err, formsvc.ErrNotFound)
	})
}

// A badUnit is a response that must be refused.
type badUnit struct {
	r       formsvc.Response
	version int64
	want    error
}

// badUnit returns a response that is refused for one of the possible reasons, or nil.
func (w *world) badUnit(c *formsvc.Campaign, taken string, n int) *badUnit {
	b := badUnit{r: w.newResponse(c), version: 1}
	switch n {
	case 0:
		b.r.Reference, b.want = taken, formsvc.ErrConflict
	case 1:
		b.version, b.want = 2, formsvc.ErrStale
	case 2:
		b.r.CampaignID, b.want = w.nextID(), formsvc.ErrNotFound
	case 3:
		b.r.User.LastName, b.want = "\x00", formsvc.ErrInvalid
	case 4:
		b.r.AccountID, b.want = w.nextID(), formsvc.ErrNotFound
	default:
		return nil
	}
	return &b
}

func testFailuresAmongGood(w *world) {
	sc := w.addScene()
	taken, _ := w.addResponse(&sc.campaign)
	var mu sync.Mutex
	good, failed := int64(1), []formsvc.Event{}
	w.writeMany(func(writer, n int) {
		if bad := w.badUnit(&sc.campaign, taken.Reference, (writer+n)%9); bad != nil {
			event := w.newEvent(&bad.r)
			err := w.store.CreateResponse(w.ctx, bad.r, bad.version, formsvc.Change{Events: []formsvc.Event{event}})
			w.wantError("CreateResponse that must fail", err, bad.want)
			mu.Lock()
			failed = append(failed, event)
			mu.Unlock()
			return
		}
		r := w.newResponse(&sc.campaign)
		w.check("CreateResponse next to others that fail", w.create(r, w.newEvent(&r)))
		mu.Lock()
		good++
		mu.Unlock()
	})
	w.wantCount(&sc.campaign, &sc.hook, good)
	w.noEvents("CreateResponse that failed", failed...)
}

// testEverythingAtOnce makes every call of the contract from many goroutines. None may fail or block another.
func testEverythingAtOnce(w *world) {
	var all sync.WaitGroup
	for _, c := range calls() {
		switch c.name {
		case "Wait", "CreateWebhook", "DeleteWebhook", "DeleteResponse", "RedeemLink", "EndSession of one":
			continue // these fail or end for other reasons
		}
		for range 2 {
			at := w.addTarget()
			all.Go(func() {
				for range 10 {
					_, err := c.do(w.ctx, w, at)
					w.check(c.name, err)
				}
			})
		}
	}
	all.Wait()
}

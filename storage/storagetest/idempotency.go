package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// testKeysAmongCreates mixes creates with and without keys in the same groups, including pairs with the same key and
// creates that fail for another reason.
func testKeysAmongCreates(w *world) {
	sc := w.addScene()
	taken, _ := w.addResponse(&sc.campaign)
	var (
		mu   sync.Mutex
		done = map[string]int{}
		good = int64(1)
	)
	w.writeMany(func(writer, n int) {
		r := w.newResponse(&sc.campaign)
		version, change := int64(1), formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}}
		key, want := "", error(nil)
		switch writer % 8 {
		case 0, 1, 2, 3: // as many as there are pairs
			key = fmt.Sprint("pair ", writer/8, writer%2, n)
		case 4:
			key, version, want = fmt.Sprint("stale ", writer, n), 2, formsvc.ErrStale
		case 5:
			key, want = fmt.Sprint("taken ", writer, n), formsvc.ErrConflict
			r.Reference = taken.Reference
		}
		if key != "" {
			change.Idempotency = new(w.fullRecord(sc.account.ID, key))
		}
		err := w.store.CreateResponse(w.ctx, r, version, change)
		if errors.Is(err, formsvc.ErrRepeated) && want == nil && key != "" {
			w.noEvents("CreateResponse that was repeated", change.Events...)
			return
		}
		if want != nil {
			w.wantError("CreateResponse", err, want)
			w.noRecord("CreateResponse that failed", sc.account.ID, key)
			return
		}
		w.check("CreateResponse", err)
		mu.Lock()
		defer mu.Unlock()
		good++
		if key != "" {
			done[key]++
			w.wantRecord("CreateResponse", change.Idempotency)
		}
	})
	if len(done) != writers/8*2*writes {
		w.Errorf("%d keys were done, want %d", len(done), writers/8*2*writes)
	}
	for key, n := range done {
		if n != 1 {
			w.Errorf("key %q was done %d times", key, n)
		}
	}
	w.wantCount(&sc.campaign, &sc.hook, good)
}

func testForget(w *world) {
	accounts := []formsvc.ID{w.addAccount().ID, w.addAccount().ID}
	var records []formsvc.IdempotencyRecord
	for i, n := range rand.New(rand.NewPCG(15, 0)).Perm(10) { // in no order
		r := w.fullRecord(accounts[i%2], fmt.Sprint(n))
		r.CreatedAt = start().Add(time.Duration(n) * time.Hour)
		w.must("Remember", remember(w.ctx, w.store, r))
		records = append(records, r)
	}
	gone := func(before time.Time, limit, want int, upTo int) {
		w.Helper()
		n, err := w.store.Prune(w.ctx, formsvc.PruneIdempotency, before, limit)
		if err != nil || n != want {
			w.Errorf("Forget: %d, %v, want %d", n, err, want)
		}
		for i := range records {
			r := &records[i]
			if r.CreatedAt.Before(start().Add(time.Duration(upTo) * time.Hour)) {
				w.noRecord("forgotten", r.AccountID, r.Key)
			} else {
				w.wantRecord("not forgotten", r)
			}
		}
	}
	gone(start(), 100, 0, 0)
	gone(nextDay(), 0, 0, 0)
	gone(start().Add(5*time.Hour), 3, 3, 3)
	gone(start().Add(5*time.Hour), 3, 2, 5)
	gone(start().Add(5*time.Hour), 3, 0, 5)
	gone(nextDay(), 100, 5, 10)
}

// testCancelDuringKeyed compares the results of calls with the store: response and record exist both or not at all.
func testCancelDuringKeyed(w *world) {
	sc := w.addScene()
	many(func(random *rand.Rand) {
		for range 20 {
			r := w.newResponse(&sc.campaign)
			record := w.fullRecord(sc.account.ID, string(r.ID))
			err := w.cancelling(random, w.creating(r, formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}, Idempotency: &record}))
			w.wantDone("CreateResponse", err, func() bool {
				_, err := w.store.Recall(w.ctx, record.AccountID, record.Key, start())
				return err == nil
			})
			w.wantDone("CreateResponse", err, func() bool {
				_, err := w.store.Response(w.ctx, keyOf(&r))
				return err == nil
			})
		}
	})
	w.wantCount(&sc.campaign, &sc.hook, int64(len(w.responses(&sc.campaign))))
}

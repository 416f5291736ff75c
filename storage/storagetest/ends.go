package storagetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func testUseAfterClose(w *world) {
	at := w.addTarget()
	w.must("Close", w.store.Close())
	if err := w.store.Close(); err != nil {
		w.wantError("Close, again", err, formsvc.ErrStoreClosed)
	}
	for _, c := range calls() {
		w.wantError(c.name+" after Close", errorOf(c.do(w.ctx, w, at)), formsvc.ErrStoreClosed)
	}
}

// closeDuringCalls closes the store while responses are created, and returns those that were acknowledged.
func (w *world) closeDuringCalls(sc *scene) (acked []formsvc.Response) {
	w.Helper()
	var mu sync.Mutex
	var all, first sync.WaitGroup // first is done once every writer has written
	for range writers {
		first.Add(1)
		all.Go(func() {
			begun := sync.OnceFunc(first.Done)
			defer begun()
			for range writes {
				r := w.newResponse(&sc.campaign)
				if err := w.create(r, w.newEvent(&r)); err != nil {
					w.wantError("CreateResponse during Close", err, formsvc.ErrStoreClosed)
					return
				}
				mu.Lock()
				acked = append(acked, r)
				mu.Unlock()
				begun()
			}
		})
	}
	first.Wait()
	w.must("Close", w.store.Close())
	all.Wait()
	return acked
}

func testAcknowledgedSurvives(w *world) {
	sc := w.addScene()
	acked := w.closeDuringCalls(sc)
	w.store = w.reopen(w.T, w.store)
	for i := range acked {
		w.same("response", must(w.store.Response(w.ctx, acked[i].Key()))(w, "Response that was acknowledged"), acked[i])
	}
	w.wantCount(sc, len(acked))
}

func handleTests() []test {
	tests := []test{{"histories through both", func(w *world) {
		w.twin = w.reopen(w.T, w.store)
		testModel(w, 8, (*model).other)
	}}}
	for _, r := range races() {
		tests = append(tests, test{r.name, func(w *world) { r.run(w, []Store{w.store, w.reopen(w.T, w.store)}) }})
	}
	return tests
}

func testCancelledBefore(w *world) {
	at := w.addTarget()
	before := w.snapshot()
	cancelled, cancel := context.WithCancel(w.ctx)
	cancel()
	expired, stop := context.WithDeadline(w.ctx, time.Unix(0, 0))
	defer stop()
	for _, c := range calls() {
		w.wantError(c.name+" with a cancelled context", errorOf(c.do(cancelled, w, at)), context.Canceled)
		w.wantError(c.name+" with an expired context", errorOf(c.do(expired, w, at)), context.DeadlineExceeded)
	}
	w.unchanged("calls whose context had ended", &before)
	// A session, a link and a delivery would be gone. In other tests, these calls fail for the tested reason.
	for _, c := range calls() {
		if items, err := c.do(w.ctx, w, at); err != nil || c.none && items == 0 {
			w.Errorf("%s: %d items, error %v", c.name, items, err)
		}
	}
}

// cancelling runs a call whose context ends at a random time: before, during or after it.
func (w *world) cancelling(random *rand.Rand, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	if random.IntN(2) == 0 {
		go cancel()
	} else {
		time.AfterFunc(time.Duration(random.IntN(2_000))*time.Microsecond, cancel)
	}
	err := call(ctx)
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, formsvc.ErrUnknownOutcome) {
		w.Errorf("error %v, want %v", err, context.Canceled)
	}
	return err
}

// testCancelDuring compares the results of calls whose context ends with what they did: all or nothing. Only an unknown
// outcome allows both.
func testCancelDuring(w *world) {
	sc := w.addScene()
	is := func(err error) bool { return err == nil }
	event := func(e formsvc.Event) bool {
		_, err := w.store.Event(w.ctx, e.AccountID, e.ID)
		return is(err)
	}
	file := func(f formsvc.File) bool {
		_, err := w.store.File(w.ctx, formsvc.FileKey{AccountID: f.AccountID, ID: f.ID})
		return is(err)
	}
	version := func(r formsvc.Response) int64 {
		got, _ := w.store.Response(w.ctx, r.Key())
		return got.Version
	}
	many(func(random *rand.Rand) {
		for range 10 {
			r, fresh := w.newResponse(&sc.campaign), w.newResponse(&sc.campaign)
			w.check("CreateResponse", w.create(r))
			f, barred, record := w.newFile(&r), w.newFile(&r), w.newReply(&fresh, string(r.ID))
			events := []formsvc.Event{w.newEvent(&fresh), w.newEvent(&r), w.newEvent(&r)}
			for i, x := range []struct {
				call func(ctx context.Context) error
				did  func() []bool // the parts that it did
			}{
				{func(ctx context.Context) error {
					return w.store.CreateResponse(ctx, fresh, 1, formsvc.Change{Events: events[:1], Idempotency: record})
				}, func() []bool {
					_, err := w.store.Recall(w.ctx, record.AccountID, record.Key, start())
					return []bool{version(fresh) == 1, is(err), event(events[0])}
				}},
				{func(ctx context.Context) error { return w.update(ctx, r.Key(), events[1]) }, func() []bool {
					return []bool{version(r) == 2, event(events[1])}
				}},
				{func(ctx context.Context) error { return w.createFile(ctx, f, events[2]) }, func() []bool {
					return []bool{file(f), event(events[2])}
				}},
				{func(ctx context.Context) error {
					return errorOf(w.store.BarFiles(ctx, []formsvc.ID{barred.ID}))
				}, func() []bool { return []bool{errors.Is(w.createFile(w.ctx, barred), formsvc.ErrConflict)} }},
				{func(ctx context.Context) error {
					return errorOf(w.store.DeleteResponse(ctx, r.Key(), nil))
				}, func() []bool {
					if file(f) || file(barred) {
						return []bool{version(r) == 0, false}
					}
					return []bool{version(r) == 0}
				}},
			} {
				err := w.cancelling(random, x.call)
				did := x.did()
				if slices.Contains(did, true) && slices.Contains(did, false) || did[0] != is(err) && !errors.Is(err, formsvc.ErrUnknownOutcome) {
					w.Errorf("call %d returned %v; it did: %v", i, err, did)
				}
			}
		}
	})
}

// testIsolation makes every call that looks up records, with each of its identifiers replaced in turn. The replacements
// are identifiers of another account, of another campaign and of no record, and texts that are no canonical IDs.
func testIsolation(w *world) {
	mine, others := w.addTarget(), w.addTarget()
	mine2 := *mine // another campaign of the same account
	second := w.addCampaign(mine[accountPart])
	r, _ := w.addResponse(&second)
	mine2[campaignPart], mine2[responsePart] = second.ID, r.ID
	before := w.snapshot()
	for _, c := range calls() {
		for _, p := range c.uses {
			id := mine[p]
			bad := map[string]formsvc.ID{
				"no": w.nextID(), "an empty": "", "a malformed": "nope", "an upper case": formsvc.ID(strings.ToUpper(string(id))),
				"a braced": "{" + id + "}", "an undashed": formsvc.ID(strings.ReplaceAll(string(id), "-", "")), "a NUL in": id[:35] + "\x00",
				"a quoted": id + "') OR true --",
			}
			if p != accountPart || len(c.uses) > 1 { // otherwise it is that account's own call
				bad["another account's"] = others[p]
			}
			if p >= campaignPart && slices.Contains(c.uses, responsePart) {
				bad["another campaign's"] = mine2[p]
			}
			for whose, id := range bad {
				if id == mine[p] {
					continue
				}
				at := *mine
				at[p] = id
				items, err := c.do(w.ctx, w, &at)
				ok := !c.none && errors.Is(err, formsvc.ErrNotFound) || c.none && err == nil && items == 0
				if strings.Contains(string(id), "\x00") { // no record has this ID, and it is invalid
					ok = ok || errors.Is(err, formsvc.ErrInvalid) || errors.Is(err, formsvc.ErrNotFound)
				}
				if !ok {
					w.Errorf("%s with %s %s: %d items, error %v", c.name, whose, p, items, err)
				}
			}
		}
	}
	w.unchanged("calls that found nothing", &before)
	for _, account := range []formsvc.ID{mine[accountPart], others[accountPart]} {
		_, err := contents(w.ctx, w.store, []formsvc.ID{account},
			"nope", "'", "00000000-0000-0000-0000-000000000000') OR true ORDER BY 1 DESC --", "00000000-0000-0000-0000-000000000000' OR 'a' = 'a")
		w.check("pages after texts that are no IDs", err)
	}
}

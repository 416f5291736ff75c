package storagetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func testCancelledBefore(w *world) {
	at := w.addTarget()
	before := w.snapshot()
	cancelled, cancel := context.WithCancel(w.ctx)
	cancel()
	expired, stop := context.WithDeadline(w.ctx, time.Unix(0, 0))
	defer stop()
	for _, c := range calls() {
		_, err := c.do(cancelled, w, at)
		w.wantError(c.name+" with a cancelled context", err, context.Canceled)
		_, err = c.do(expired, w, at)
		w.wantError(c.name+" with an expired context", err, context.DeadlineExceeded)
	}
	w.unchanged("calls whose context had ended", &before)
	_, err := w.store.SessionByHash(w.ctx, targetHash(at[accountPart]))
	w.must("SessionByHash of what a cancelled call would have ended", err)
	_, err = w.redeem(&formsvc.Link{Hash: targetHash(at[accountPart])}, w.newSession(at[accountPart]))
	w.must("RedeemLink with what a cancelled call would have redeemed", err)
	if claims := w.claim(nextDay()); len(claims) != 1 {
		w.Errorf("%d claims, want the one that a cancelled Claim left", len(claims))
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

// many runs several workers, each with its own random source.
func many(worker func(random *rand.Rand)) {
	var all sync.WaitGroup
	for i := range uint64(16) {
		all.Go(func() { worker(rand.New(rand.NewPCG(14, i))) })
	}
	all.Wait()
}

func testCancelDuringUpdate(w *world) {
	sc := w.addScene()
	var mu sync.Mutex
	events := 0
	many(func(random *rand.Rand) {
		r := w.newResponse(&sc.campaign)
		w.check("CreateResponse", w.create(r))
		for range 20 {
			err := w.cancelling(random, func(ctx context.Context) error {
				_, err := w.store.UpdateResponse(ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
					r.Version++
					return formsvc.Change{Events: []formsvc.Event{w.newEvent(r)}}, nil
				})
				return err
			})
			got, found := w.store.Response(w.ctx, keyOf(&r))
			w.check("Response", found)
			if changed := got.Version == r.Version+1; changed != (err == nil) && !errors.Is(err, formsvc.ErrUnknownOutcome) {
				w.Errorf("UpdateResponse returned %v, and the response has version %d after %d", err, got.Version, r.Version)
			}
			r = got
		}
		mu.Lock()
		events += int(r.Version) - 1
		mu.Unlock()
	})
	if n := len(w.deliveries(&sc.hook)); n != events {
		w.Errorf("%d deliveries of %d changes", n, events)
	}
}

// testCancelDuringFiles compares the results of calls with their effects, like testCancelDuringCreate.
func testCancelDuringFiles(w *world) {
	sc := w.addScene()
	many(func(random *rand.Rand) {
		for range 10 {
			r := w.newResponse(&sc.campaign)
			w.check("CreateResponse", w.create(r))
			f, barred := w.newFile(&r), w.newFile(&r)
			e := w.newEvent(&r)
			w.wantDone("CreateFile", w.cancelling(random, func(ctx context.Context) error {
				return w.store.CreateFile(ctx, f, func(*formsvc.Response) (formsvc.Change, error) {
					return formsvc.Change{Events: []formsvc.Event{e}}, nil
				})
			}), func() bool { return w.fileExists(&f) })
			if !w.fileExists(&f) {
				w.noEvents("CreateFile that changed nothing", e)
			}
			w.wantDone("BarFiles", w.cancelling(random, func(ctx context.Context) error {
				_, err := w.store.BarFiles(ctx, []formsvc.ID{barred.ID})
				return err
			}), func() bool { return errors.Is(w.createFile(barred), formsvc.ErrConflict) })
			w.wantDone("DeleteResponse", w.cancelling(random, func(ctx context.Context) error {
				_, err := w.store.DeleteResponse(ctx, keyOf(&r), nil)
				return err
			}), func() bool {
				_, err := w.store.Response(w.ctx, keyOf(&r))
				gone := errors.Is(err, formsvc.ErrNotFound)
				if gone && (w.fileExists(&f) || w.fileExists(&barred)) {
					w.Errorf("a deleted response left a file")
				}
				return gone
			})
		}
	})
}

// wantDone fails the test unless the call took effect exactly if it returned nil. An unknown outcome allows both.
func (w *world) wantDone(what string, err error, done func() bool) {
	w.Helper()
	if did := done(); did != (err == nil) && !errors.Is(err, formsvc.ErrUnknownOutcome) {
		w.Errorf("%s returned %v, and was done: %t", what, err, did)
	}
}

func (w *world) fileExists(f *formsvc.File) bool {
	w.Helper()
	_, err := w.store.File(w.ctx, fileKey(f))
	if err != nil {
		w.wantError("File", err, formsvc.ErrNotFound)
	}
	return err == nil
}

package storagetest

import (
	"context"
	"errors"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// wait waits for work for a long time. If the store loses a wake-up, the guard ends the wait and the test fails.
func (w *world) wait() error {
	guard, stop := context.WithTimeout(w.ctx, 30*time.Second)
	defer stop()
	return w.store.Wait(guard, time.Hour)
}

func testWaitAfterCommit(w *world) {
	sc := w.addScene()
	for range 20 {
		r, _ := w.addResponse(&sc.campaign)
		w.must("Wait after CreateResponse", w.wait())
		_, err := w.store.UpdateResponse(w.ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			return formsvc.Change{Events: []formsvc.Event{w.newEvent(r)}}, nil
		})
		w.must("UpdateResponse", err)
		w.must("Wait after UpdateResponse", w.wait())
		w.must("CreateFile", w.createFile(w.newFile(&r), w.newEvent(&r)))
		w.must("Wait after CreateFile", w.wait())
		w.must("CreateComment", w.createComment(w.newComment(&r), w.newEvent(&r)))
		w.must("Wait after CreateComment", w.wait())
		w.must("CreateSignature", w.createSignature(w.newSignature(&r), w.newEvent(&r)))
		w.must("Wait after CreateSignature", w.wait())
	}
}

func testWaitAfterRedeliver(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	w.must("Wait after CreateResponse", w.wait())
	for range 5 {
		w.attend(&sc.hook, nextDay(), delivery.Failed)
		w.redeliver(&e, &sc.hook, nextDay())
		w.must("Wait after Redeliver", w.wait())
		w.attend(&sc.hook, nextDay(), delivery.Failed)
		_, err := w.store.RedeliverFailed(w.ctx, formsvc.RedeliverQuery{
			Key: webhookKey(&sc.hook), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 10,
		}, nil)
		w.must("RedeliverFailed", err)
		w.must("Wait after RedeliverFailed", w.wait())
		_, err = w.store.CreateTest(w.ctx, webhookKey(&sc.hook), w.newTestEvent(sc.account.ID), nil)
		w.must("CreateTest", err)
		w.must("Wait after CreateTest", w.wait())
	}
}

func testWaitDuringCommit(w *world) {
	sc := w.addScene()
	for range 50 {
		ready, result := make(chan struct{}), make(chan error, 1)
		go func() {
			close(ready)
			result <- w.wait()
		}()
		<-ready
		w.addResponse(&sc.campaign)
		w.must("Wait during CreateResponse", <-result)
	}
}

func testWaitCancelled(w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	result := make(chan error)
	go func() {
		var err error
		for err == nil { // a store may wake up without work
			err = w.store.Wait(ctx, time.Hour)
		}
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		w.Errorf("Wait: error %v, want %v", err, context.Canceled)
	}
}

package storagetest

import (
	"errors"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
)

// closeStore closes the store, which must succeed. Closing it again must have no effect.
func (w *world) closeStore() {
	w.Helper()
	w.must("Close", w.store.Close())
	if err := w.store.Close(); err != nil {
		w.wantError("Close, again", err, formsvc.ErrStoreClosed)
	}
}

func testUseAfterClose(w *world) {
	at := w.addTarget()
	w.closeStore()
	for _, c := range calls() {
		_, err := c.do(w.ctx, w, at)
		w.wantError(c.name+" after Close", err, formsvc.ErrStoreClosed)
	}
}

func testCloseDuringCalls(w *world) {
	at := w.addTarget()
	started := make(chan struct{}, writers)
	var all sync.WaitGroup
	defer all.Wait()
	for range writers {
		all.Go(func() {
			started <- struct{}{}
			for range writes {
				r := w.newResponse(&formsvc.Campaign{ID: at[campaignPart], AccountID: at[accountPart]})
				err := w.create(r)
				if err != nil && !errors.Is(err, formsvc.ErrStoreClosed) {
					w.Errorf("CreateResponse during Close: %v", err)
				}
			}
		})
	}
	for range writers {
		<-started
	}
	w.closeStore()
	all.Wait()
	_, err := w.store.Accounts(w.ctx)
	w.wantError("CreateResponse after Close", err, formsvc.ErrStoreClosed)
}

package storagetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// erase erases. The second time there must be nothing left to erase.
func (w *world) erase(q formsvc.EraseQuery) formsvc.Erased {
	w.Helper()
	out, err := w.store.Erase(w.ctx, q)
	w.must("Erase", err)
	again, err := w.store.Erase(w.ctx, q)
	w.must("Erase, again", err)
	w.same("what was erased the second time", again, formsvc.Erased{})
	return out
}

func testEraseCampaigns(w *world) {
	sc := w.addScene()
	second := w.addCampaign(sc.account.ID)
	before := w.snapshot()
	e := formsvc.EraseQuery{AccountID: sc.account.ID}
	const each = 150 // together more than fit one statement
	for _, c := range []*formsvc.Campaign{&second, &sc.campaign} {
		for range each {
			r, _ := w.addResponse(c)
			e.Responses = append(e.Responses, keyOf(&r))
		}
	}
	e.Responses = append(e.Responses, e.Responses[0], e.Responses[each])
	out := w.erase(e)
	w.same("erased", out, formsvc.Erased{Responses: 2 * each, Events: 2 * each})
	w.unchanged("Erase of all responses", &before)
}

// testEraseTogether erases the same responses concurrently: each is counted by one call.
func testEraseTogether(w *world) {
	sc := w.addScene()
	const n = 60
	keys := make([]formsvc.ResponseKey, n)
	for i := range keys {
		r, _ := w.addResponse(&sc.campaign)
		keys[i] = keyOf(&r)
	}
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	var mu sync.Mutex
	var total formsvc.Erased
	w.together(8, func(i int) {
		mine := slices.Clone(keys)
		if i%2 == 0 {
			slices.Reverse(mine)
		}
		out, err := w.store.Erase(w.ctx, formsvc.EraseQuery{AccountID: sc.account.ID, Responses: mine})
		w.check("Erase beside others", err)
		mu.Lock()
		defer mu.Unlock()
		total.Responses += out.Responses
		total.Events += out.Events
	})
	w.same("erased together", total, formsvc.Erased{Responses: n, Events: n})
	if c := w.campaigns(sc.account.ID); c[0].ResponseCount != 0 {
		w.Errorf("%d responses counted, want none", c[0].ResponseCount)
	}
}

// testEraseBeside erases responses while they get files, comments, signatures and changes, and while their deliveries
// are sent: nothing of them must remain.
func testEraseBeside(w *world) {
	sc := w.addScene()
	before := w.snapshot()
	for round := range 6 {
		list := make([]formsvc.Response, 10)
		keys := make([]formsvc.ResponseKey, len(list))
		for i := range list {
			list[i], _ = w.addResponse(&sc.campaign)
			keys[i] = keyOf(&list[i])
		}
		calls := []func(r *formsvc.Response) error{
			func(r *formsvc.Response) error { return w.createFile(w.newFile(r), w.newEvent(r)) },
			func(r *formsvc.Response) error { return w.createComment(w.newComment(r), w.newEvent(r)) },
			func(r *formsvc.Response) error { return w.createSignature(w.newSignature(r), w.newEvent(r)) },
			func(r *formsvc.Response) error { return incrementResponse(w, w.store, r) },
		}
		w.together(len(calls)+2, func(i int) {
			switch {
			case i < len(calls):
				for j := range list {
					if err := calls[i](&list[j]); err != nil {
						w.wantError(fmt.Sprintf("call %d beside Erase", i), err, formsvc.ErrNotFound)
					}
				}
			case i == len(calls):
				for range 5 {
					claims := w.take(nextDay(), share(&sc.hook, 20))
					outcomes := make([]delivery.Outcome, len(claims))
					for j := range claims {
						outcomes[j] = outcome(&claims[j], []delivery.Result{delivery.Failed, delivery.Postponed}[j%2], nextDay())
					}
					_, err := w.store.Finish(w.ctx, outcomes)
					w.check("Finish beside Erase", err)
				}
			default:
				time.Sleep(time.Duration(round) * time.Millisecond) // so that the other goroutines have begun
				_, err := w.store.Erase(w.ctx, formsvc.EraseQuery{AccountID: sc.account.ID, Responses: keys})
				w.check("Erase beside others", err)
			}
		})
	}
	w.unchanged("Erase of all that was added", &before)
}

package formsvc_test

import (
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// someID is the ID of no record.
const someID formsvc.ID = "01890000-0000-7000-8000-000000000000"

func (w *world) recent(limit int) []formsvc.Event {
	w.tb.Helper()
	events, err := w.svc.Events.Recent(w.ctx, formsvc.RecentQuery{AccountID: w.account, Limit: limit})
	if err != nil {
		w.tb.Fatal(err)
	}
	return events
}

func (w *world) about(r *formsvc.Response, limit int) []formsvc.Event {
	w.tb.Helper()
	events, err := w.svc.Events.About(w.ctx, responseKey(r), limit)
	if err != nil {
		w.tb.Fatal(err)
	}
	return events
}

func TestRecentEventsAreLimited(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	for i := range 1_005 {
		w.updated(&r, formsvc.ResponsePatch{Status: new([]string{"validated", "pending"}[i%2])})
	}
	for limit, want := range map[int]int{-5: 1, 0: 1, 1: 1, 7: 7, 100: 100, 101: 100, 1 << 40: 100} {
		if n := len(w.recent(limit)); n != want {
			t.Errorf("%d of the newest with a limit of %d, want %d", n, limit, want)
		}
	}
	for limit, want := range map[int]int{-5: 1, 0: 1, 1: 1, 7: 7, 1000: 1000, 1001: 1000, 1 << 40: 1000} {
		if n := len(w.about(&r, limit)); n != want {
			t.Errorf("%d about a response with a limit of %d, want %d", n, limit, want)
		}
	}
}

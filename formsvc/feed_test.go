package formsvc_test

import (
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// someID is the ID of no record.
const someID formsvc.ID = "01890000-0000-7000-8000-000000000000"

func TestRecentEventsAreLimited(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	for i := range 1_005 {
		w.updated(&r, formsvc.ResponsePatch{Status: new([]string{"validated", "pending"}[i%2])})
	}
	for limit, want := range map[int][2]int{
		-5: {1, 1}, 0: {1, 1}, 1: {1, 1}, 7: {7, 7}, 100: {100, 100}, 101: {100, 101}, 1001: {100, 1000}, 1 << 40: {100, 1000},
	} {
		recent, err := w.svc.Events.Recent(w.ctx, formsvc.RecentQuery{AccountID: w.account, Limit: limit})
		about, err2 := w.svc.Events.About(w.ctx, r.Key(), limit)
		if err != nil || err2 != nil || len(recent) != want[0] || len(about) != want[1] {
			t.Errorf("with a limit of %d there are %d recent ones and %d about a response, %v, %v", limit, len(recent), len(about), err, err2)
		}
	}
}

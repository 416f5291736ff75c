package formsvc_test

import (
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// All goes through the pages of any list, from its offset on, also while records are removed.
func TestAll(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	var want, got []formsvc.ID
	for range 6 {
		want = append(want, w.submitted(&c).ID)
	}
	for r, err := range formsvc.All(formsvc.PageQuery{Limit: 2, Offset: 1, Ascending: true}, func(page formsvc.PageQuery) (formsvc.Page[formsvc.Response], error) {
		return w.svc.Responses.List(w.ctx, formsvc.ResponseQuery{AccountID: w.account, CampaignID: c.ID, NoTotal: true, Page: page})
	}) {
		wantError(t, err, nil)
		got = append(got, r.ID)
		wantError(t, w.svc.Responses.Delete(w.ctx, r.Key(), nil), nil)
	}
	equalAll(t, got, want[1:], "%v")
}

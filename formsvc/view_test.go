package formsvc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// Views are saved and deleted by name, also by two people at once. The campaign keeps its version, and clients hear nothing.
func TestViews(t *testing.T) {
	w := newWorld(t)
	made, views := w.campaign(), w.svc.Campaigns
	key := made.Key()
	save := func(name, query string) error {
		return views.SaveView(w.ctx, key, formsvc.View{Name: name, Query: query})
	}
	var all sync.WaitGroup
	for i := range 19 {
		all.Go(func() { noError(t, save(fmt.Sprint("view ", i), "a=b")) })
	}
	all.Wait()
	noError(t, save("view 7", "c=d"))
	noError(t, save(strings.Repeat("é", 60), strings.Repeat("x", 2_000)))
	if limit, ok := errors.AsType[*formsvc.LimitError](save("one more", "")); !ok || limit.Limit != 20 || limit.Kind != "views" {
		t.Errorf("the 21st view: %v", limit)
	}
	noError(t, save("view 7", "e=f"))
	wantFaults(t, save(" ", strings.Repeat("é", 1_001)), "/name required")
	wantFaults(t, save("a", strings.Repeat("é", 1_001)), "/query too_long")
	wantFaults(t, save(strings.Repeat("é", 61), "\xff"), "/name too_long", "/query invalid_utf8")
	noError(t, views.DeleteView(w.ctx, key, "view 3"))
	wantError(t, views.DeleteView(w.ctx, key, "view 3"), formsvc.ErrNotFound)
	wantError(t, views.DeleteView(w.ctx, formsvc.CampaignKey{AccountID: key.AccountID, ID: key.AccountID}, "view 4"), formsvc.ErrNotFound)
	c := must(views.Get(w.ctx, key))
	if len(c.Views) != 19 || c.Version != 1 || len(w.events()) > 0 || !slices.Contains(c.Views, formsvc.View{Name: "view 7", Query: "e=f"}) {
		t.Errorf("after all that, version %d has %v", c.Version, c.Views)
	}
	replaced := must(views.Replace(w.ctx, key, formsvc.CampaignInput{Title: "Changed"}))
	equalAll(t, replaced.Views, c.Views, "a replaced campaign has %v, want %v")
}

// A campaign that requires a name gets it with every new response, and keeps it.
func TestRequireName(t *testing.T) {
	w := newWorld(t)
	in := formsvc.CampaignInput{Title: "x", EmailOptional: true}
	c := must(w.svc.Campaigns.Create(w.ctx, w.account, in))
	old := must(w.svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{}))
	in.RequireName = true
	must(w.svc.Campaigns.Replace(w.ctx, c.Key(), in))
	first, last := "/user/firstName required", "/user/lastName required"
	for _, x := range []struct {
		user formsvc.User
		want []string
	}{{formsvc.User{}, []string{first, last}}, {formsvc.User{FirstName: "Ada", LastName: " \u200b"}, []string{last}}, {ada(), nil}} {
		wantFaults(t, failure(w.svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: x.user})), x.want...)
		row := formsvc.ImportRow{Reference: "r", CreatedAt: start(), ResponseInput: formsvc.ResponseInput{User: x.user}}
		rows := func(yield func(formsvc.ImportRow, error) bool) { yield(row, nil) }
		report := must(w.svc.Responses.Import(w.ctx, c.Key(), rows, nil))
		if got := report.Imported == 0; got != (x.want != nil) || got && !slices.Equal(faults(report.Faults[0].Err), x.want) {
			t.Errorf("an imported %+v: %+v, want %v", x.user, report, x.want)
		}
	}
	status, empty := "done", ""
	wantFaults(t, failure(w.update(&old, formsvc.ResponsePatch{FirstName: &empty})), first)
	wantFaults(t, failure(w.update(&old, formsvc.ResponsePatch{LastName: &empty})), last)
	wantFaults(t, failure(w.update(&old, formsvc.ResponsePatch{Status: &status})))
}

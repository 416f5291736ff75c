package formsvc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

type exporting struct {
	*world
	campaign formsvc.Campaign
}

func newExporting(t *testing.T) *exporting {
	w := newWorld(t)
	return &exporting{w, w.campaign()}
}

// add creates a response with answers to these modules.
func (x *exporting) add(names ...string) formsvc.ID {
	x.tb.Helper()
	var answers []formsvc.Answer
	for _, name := range names {
		answers = append(answers, answer(name, "x"))
	}
	return x.submitted(&x.campaign, answers...).ID
}

func (x *exporting) begin(page formsvc.PageQuery, filter formsvc.ResponseFilter) *formsvc.Export {
	x.tb.Helper()
	e := must(x.svc.Responses.Export(x.ctx, formsvc.ResponseQuery{
		AccountID: x.account, CampaignID: x.campaign.ID, Page: page, Filter: filter,
	}))
	x.store.disturb(nil)
	x.store.pages = nil
	return e
}

func (x *exporting) all(e *formsvc.Export) (ids []formsvc.ID) {
	x.tb.Helper()
	for r, err := range e.All(x.ctx) {
		noError(x.tb, err)
		ids = append(ids, r.ID)
	}
	return ids
}

// An export has the responses from its start, in either order, from any position.
func TestExport(t *testing.T) {
	x := newExporting(t)
	var want []formsvc.ID
	if got := x.all(x.begin(formsvc.PageQuery{}, formsvc.ResponseFilter{})); len(got) != 0 {
		t.Errorf("of no responses: %v", got)
	}
	for range 3_000 {
		want = append(want, x.add())
	}
	for _, ascending := range []bool{true, false} {
		for _, at := range []int{-1, 0, 1, 1_234, 2_998, 2_999} {
			want := slices.Clone(want)
			if !ascending {
				slices.Reverse(want)
			}
			page := formsvc.PageQuery{Ascending: ascending, Limit: 3, Offset: 5}
			if at >= 0 {
				page.After = want[at]
			}
			e := x.begin(page, formsvc.ResponseFilter{})
			x.add("late") // before and between the pages
			x.store.disturb(func(method string, call int) error {
				if method == "Responses" && call < 10 {
					x.add("late")
				}
				return nil
			})
			if got := x.all(e); !slices.Equal(got, want[at+1:]) {
				t.Errorf("ascending %t after %d: %d responses, want %d", ascending, at, len(got), len(want)-at-1)
			}
			for _, id := range x.all(x.begin(formsvc.PageQuery{Ascending: true, After: max(want[2_999], want[0])}, formsvc.ResponseFilter{})) {
				key := formsvc.ResponseKey{AccountID: x.campaign.AccountID, CampaignID: x.campaign.ID, ID: id}
				wantError(t, x.svc.Responses.Delete(x.ctx, key, nil), nil)
			}
		}
	}
}

// The number of responses on a page depends on their size.
func TestExportPages(t *testing.T) {
	x := newExporting(t)
	for range 2_000 {
		x.add()
	}
	large := formsvc.Answer{Name: "a", Value: []string{strings.Repeat("x", 200<<10)}}
	for range 20 {
		x.submitted(&x.campaign, large)
	}
	e := x.begin(formsvc.PageQuery{Ascending: true}, formsvc.ResponseFilter{})
	equal(t, len(x.all(e)), 2_020, "%d responses")
	largest, smallest := slices.Max(x.store.pages), slices.Min(x.store.pages)
	if largest < 500 || largest > 1_000 || smallest > 2 || len(x.store.pages) > 30 {
		t.Errorf("pages of %v", x.store.pages)
	}
}

// An error of the store comes once, at the end.
func TestExportReturnsTheStoresError(t *testing.T) {
	x := newExporting(t)
	for range 100 {
		x.add()
	}
	e := x.begin(formsvc.PageQuery{}, formsvc.ResponseFilter{})
	second := func(method string, call int) error {
		if method == "Responses" && call == 2 {
			return formsvc.ErrUnavailable
		}
		return nil
	}
	x.store.disturb(second)
	var errs []error
	for _, err := range e.All(t.Context()) {
		errs = append(errs, err)
	}
	if n := len(errs); n < 2 || n > 100 || errors.Join(errs[:n-1]...) != nil || !errors.Is(errs[n-1], formsvc.ErrUnavailable) {
		t.Errorf("%v", errs)
	}
	x.store.disturb(second)
	if _, ok, err := e.Columns(t.Context(), 10); ok || !errors.Is(err, formsvc.ErrUnavailable) {
		t.Errorf("Columns: %t, %v", ok, err)
	}
}

func TestExportColumns(t *testing.T) {
	x := newExporting(t)
	for _, names := range [][]string{{"b", "a"}, {}, {"z", "c"}, {"c", "d"}} {
		x.add(names...)
	}
	last := x.add("only here")
	w := x.world
	w.updated(&formsvc.Response{AccountID: w.account, CampaignID: x.campaign.ID, ID: last}, formsvc.ResponsePatch{Status: new("validated")})
	columns := func(after formsvc.ID, filter formsvc.ResponseFilter, limit int, want ...string) {
		t.Helper()
		got, ok, err := x.begin(formsvc.PageQuery{After: after}, filter).Columns(t.Context(), limit)
		if err != nil || ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("columns %q, %t, %v; want %q", got, ok, err, want)
		}
	}
	everything := formsvc.ResponseFilter{}
	columns("", everything, 6, "a", "b", "c", "d", "only here", "z")
	columns("", everything, 5)
	columns(last, everything, 6, "a", "b", "c", "d", "only here", "z") // as if it were not resumed
	columns("", formsvc.ResponseFilter{Status: []string{"pending"}}, 5, "a", "b", "c", "d", "z")

	in := x.campaign.CampaignInput
	for _, name := range []string{"z", "new", "a"} {
		in.Modules = append(in.Modules, formsvc.Module{Name: name, Type: "text"})
	}
	must(x.svc.Campaigns.Replace(t.Context(), x.campaign.Key(), in))
	columns("", everything, 7, "z", "new", "a", "b", "c", "d", "only here")
	columns("", everything, 6)
}

// The total length of the names is limited, too.
func TestExportColumnsLimitsNames(t *testing.T) {
	x := newExporting(t)
	for i := range 20 {
		var names []string
		for j := range 200 {
			names = append(names, fmt.Sprintf("%04d", 200*i+j)+strings.Repeat("\U0001F600", 190))
		}
		x.add(names...)
	}
	if names, ok, err := x.begin(formsvc.PageQuery{}, formsvc.ResponseFilter{}).Columns(t.Context(), 10_000); ok || err != nil {
		t.Errorf("%d columns, %v", len(names), err)
	}
}

package formsvc_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// importRows yields rows of three batches, with an invalid one, and an error in place of the row fail.
func importRows(fail int) iter.Seq2[formsvc.ImportRow, error] {
	return func(yield func(formsvc.ImportRow, error) bool) {
		for i := range 500 {
			var err error
			row := formsvc.ImportRow{
				Reference: fmt.Sprintf("old-%d", i), ResponseInput: formsvc.ResponseInput{User: ada()},
				CreatedAt: start().Add(-1000 * time.Hour).Add(time.Duration(i) * time.Second),
			}
			switch i {
			case 7:
				row.Status, row.User.Email = "completed", "nobody"
			case 8:
				row.Status = "completed"
			case 9:
				row.ID = "nope"
			case 11:
				err = &formsvc.ValidationError{Fields: []formsvc.FieldError{{Pointer: "/line", Code: "unreadable"}}}
			case 490:
				row.Held = formsvc.HeldTrap
			}
			if i == fail {
				err = errFrail
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// An import into a closed campaign keeps times and statuses. One that was interrupted continues, and adds nothing twice.
func TestImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := must(w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "Old", Status: formsvc.CampaignClosed}))
	run := func(fail, imported, existing int, opts *formsvc.ImportOptions) {
		t.Helper()
		report, err := w.svc.Responses.Import(w.ctx, c.Key(), importRows(fail), opts)
		if (err != nil) != (fail >= 0) || report.Imported != imported || report.Existing != existing || len(report.Faults) != 3 {
			t.Fatalf("%+v, %v", report, err)
		}
		wantFaults(t, report.Faults[0].Err, "/user/email invalid_email")
		wantFaults(t, report.Faults[1].Err, "/id invalid_value")
		wantFaults(t, report.Faults[2].Err, "/line unreadable")
		if report.Faults[0].Row != 8 || report.Faults[1].Row != 10 {
			t.Errorf("the faults are %+v", report.Faults)
		}
	}
	run(-1, 497, 0, &formsvc.ImportOptions{DryRun: true})
	run(450, 400, 0, nil)
	run(-1, 97, 400, &formsvc.ImportOptions{Events: true})
	run(-1, 0, 497, nil)
	if n := len(w.events()); n != 96 { // one is held
		t.Errorf("%d events", n)
	}
	equal(t, must(w.svc.Responses.Counts(w.ctx, c.Key()))["spam"], 1, "%d are held")
	page := must(w.svc.Responses.List(w.ctx, formsvc.ResponseQuery{
		AccountID: w.account, CampaignID: c.ID, Filter: formsvc.ResponseFilter{Reference: "old-8"},
	}))
	if r := page.Items[0]; !r.CreatedAt.Equal(start().Add(8*time.Second-1000*time.Hour)) || !r.CompletedAt.Equal(r.CreatedAt) || r.Status != "completed" {
		t.Errorf("%+v", r)
	}
	now := start()
	for _, bad := range []struct {
		row  formsvc.ImportRow
		want []string
	}{
		{formsvc.ImportRow{ResponseInput: formsvc.ResponseInput{User: ada()}}, []string{"/reference required", "/createdAt invalid_value"}},
		{formsvc.ImportRow{Reference: "r", ResponseInput: formsvc.ResponseInput{User: ada()}, CreatedAt: now, UpdatedAt: now.Add(-1)}, []string{"/updatedAt invalid_value"}},
		{formsvc.ImportRow{Reference: "r", ResponseInput: formsvc.ResponseInput{User: ada()}, CreatedAt: now, CompletedAt: now}, []string{"/completedAt invalid_value"}},
		{formsvc.ImportRow{Reference: "r", CreatedAt: now}, []string{"/user/email required"}},
	} {
		report := must(w.svc.Responses.Import(w.ctx, c.Key(), func(yield func(formsvc.ImportRow, error) bool) { yield(bad.row, nil) }, nil))
		wantFaults(t, report.Faults[0].Err, bad.want...)
	}
}

package main

import (
	"errors"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func TestApplication(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "grants.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if err := apply(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	forms, err := newForms(store)
	if err != nil {
		t.Fatal(err)
	}
	account, err := forms.Accounts.Ensure(t.Context(), "foundation")
	if err != nil {
		t.Fatal(err)
	}
	events, err := forms.Events.List(t.Context(), formsvc.EventQuery{AccountID: account})
	if err != nil || len(events.Items) != 4 { // created, in review, granted, completed
		t.Fatalf("%d events (%v), want 4", len(events.Items), err)
	}
	key := formsvc.ResponseKey{AccountID: account, CampaignID: events.Items[0].CampaignID, ID: events.Items[0].ResponseID}
	r, err := forms.Responses.Get(t.Context(), key)
	if err != nil || r.Status != "granted" || r.CompletedAt.IsZero() || !good.MatchString(r.Reference) {
		t.Errorf("%+v (%v)", r, err)
	}
	status := "validated"
	if _, err := forms.Responses.Update(t.Context(), key, formsvc.ResponsePatch{Status: &status}); !errors.Is(err, formsvc.ErrInvalid) {
		t.Errorf("a status of another workflow: %v, want ErrInvalid", err)
	}
}

var good = regexp.MustCompile(`^GR-\d{7}-\d{2}$`)

func TestReferences(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		r := newReference()
		sum := 0
		for i, c := range r[3:10] + r[11:] {
			sum += int(c-'0') * (i%2*2 + 1)
		}
		if !good.MatchString(r) || sum%10 != 0 {
			t.Fatalf("%s: the check digit is wrong", r)
		}
		seen[r] = true
	}
	if len(seen) < 990 {
		t.Errorf("%d different references of 1000", len(seen))
	}
}

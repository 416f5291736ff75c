package formsvc_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

func TestNewRefusesInvalidOptions(t *testing.T) {
	if svc, err := formsvc.New(nil, nil); err == nil || svc != nil {
		t.Errorf("without a store: %v, %v", svc, err)
	}
	for _, o := range []formsvc.Options{
		{QuotaWindow: -time.Hour}, {QuotaWindow: 1500 * time.Millisecond}, {QuotaWindow: 101 * 365 * 24 * time.Hour},
		{Retention: time.Minute}, {MaxFile: -1}, {Workflow: &formsvc.Workflow{Final: []string{""}}},
	} {
		if _, err := formsvc.New(memory.New(), &o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestDefaultOptions(t *testing.T) {
	ctx := t.Context()
	svc := must(formsvc.New(memory.New(), nil))
	before := time.Now().Truncate(time.Millisecond)
	a, err := svc.Accounts.Create(ctx, "a")
	if after := time.Now(); err != nil || a.CreatedAt.Before(before) || a.CreatedAt.After(after) || a.CreatedAt.Location() != time.UTC {
		t.Errorf("created at %v, between %v and %v, %v", a.CreatedAt, before, after, err)
	}
	if !version7.MatchString(string(a.ID)) {
		t.Errorf("the ID is %s", a.ID)
	}
	c := must(svc.Campaigns.Create(ctx, a.ID, formsvc.CampaignInput{Title: "x"}))
	r, err := svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: ada()})
	if err != nil || !referencePattern.MatchString(r.Reference) {
		t.Errorf("the reference is %q, %v", r.Reference, err)
	}
}

var referencePattern = regexp.MustCompile(`^[23467FHKLMQRTWXY]{5}-[23467FHKLMQRTWXY]{5}$`)

func TestReferenceFormat(t *testing.T) {
	seen := make(map[rune]int) // characters of the random half
	for i := range 10_000 {
		s := formsvc.NewReference(start().Add(time.Duration(i) * 7919 * time.Millisecond))
		if !referencePattern.MatchString(s) {
			t.Fatalf("a reference is %q", s)
		}
		for _, c := range s[6:] {
			seen[c]++
		}
	}
	for c, n := range seen { // seven standard deviations and more
		if len(seen) != 16 || n < 2734 || n > 3516 {
			t.Errorf("%q came %d times, expected about 3125", c, n)
		}
	}
}

func TestWithWritesToTheOtherStore(t *testing.T) {
	w := newWorld(t, withWorkflow(&formsvc.Workflow{Statuses: []string{"done"}, Final: []string{"done"}}))
	other := &watchedStore{Store: memory.New()}
	bound := w.svc.With(other)
	w.clock.add(time.Hour)
	a, err := bound.Accounts.Create(w.ctx, "first") // taken in the first store
	noError(t, err)
	wantError(t, failure(w.svc.Accounts.Get(w.ctx, a.ID)), formsvc.ErrNotFound)
	if a.CreatedAt != start().Add(time.Hour) || !strings.HasSuffix(string(a.ID), "000000000003") {
		t.Errorf("clock or generator are others: %+v", a)
	}
	c := must(bound.Campaigns.Create(w.ctx, a.ID, formsvc.CampaignInput{Title: "x"}))
	r, err := bound.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: ada()})
	if err != nil || r.Reference != "REF-00001" || len(other.take()) != 1 || len(w.store.take()) != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	wantFaults(t, failure(bound.Responses.Update(w.ctx, r.Key(), formsvc.ResponsePatch{Status: new("completed")})), "/status unknown_status")
}

// A rolled back transaction leaves nothing behind: neither service caches campaigns or keys for the
// other.
func TestWithCachesNothingForTheOtherStore(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	_, value := w.key(formsvc.FilesRead)
	w.submitted(&c)
	w.authenticated(w.svc, value)

	bound := w.svc.With(w.store)
	w.store.disturb(nil)
	in := formsvc.ResponseInput{User: ada()}
	must(bound.Responses.Create(w.ctx, c.Key(), in))
	w.authenticated(bound, value)
	if w.store.count("Campaign") != 1 || w.store.count("KeyByHash") != 1 {
		t.Error("the bound service asked nothing")
	}

	w.store.disturb(nil)
	w.submitted(&c)
	w.authenticated(w.svc, value)
	if w.store.count("Campaign") != 0 || w.store.count("KeyByHash") != 0 {
		t.Error("the service forgot")
	}
}

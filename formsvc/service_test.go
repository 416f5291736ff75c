package formsvc_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

func TestNewNeedsAStore(t *testing.T) {
	if svc, err := formsvc.New(nil, nil); err == nil || svc != nil {
		t.Errorf("got %v, %v", svc, err)
	}
}

func TestDefaultOptions(t *testing.T) {
	ctx := t.Context()
	for _, opts := range []*formsvc.Options{nil, {}} {
		svc, err := formsvc.New(memory.New(), opts)
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now().Truncate(time.Millisecond)
		a, err := svc.Accounts.Create(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if after := time.Now(); a.CreatedAt.Before(before) || a.CreatedAt.After(after) || a.CreatedAt.Location() != time.UTC {
			t.Errorf("created at %v, between %v and %v", a.CreatedAt, before, after)
		}
		if a.ID[14] != '7' {
			t.Errorf("the ID is %s", a.ID)
		}
		c, err := svc.Campaigns.Create(ctx, a.ID, formsvc.CampaignInput{Title: "x"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: ada()})
		if err != nil || !referencePattern.MatchString(r.Reference) {
			t.Errorf("the reference is %q, %v", r.Reference, err)
		}
		r, err = svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{Status: new("completed")})
		if err != nil || r.CompletedAt.IsZero() {
			t.Errorf("completed is not final: %+v, %v", r, err)
		}
	}
}

var referencePattern = regexp.MustCompile(`^[2-7FHKLMQRTWXY]{5}-[2-7FHKLMQRTWXY]{5}$`)

func TestReferenceFormat(t *testing.T) {
	var counts [128]int
	const n = 10_000
	for i := range n {
		s := formsvc.NewReference(start().Add(time.Duration(i) * 7919 * time.Millisecond))
		if !referencePattern.MatchString(s) || strings.ContainsAny(s, "5") {
			t.Fatalf("a reference is %q", s)
		}
		for _, c := range []byte(s[6:]) { // the random half
			counts[c]++
		}
	}
	const alphabet = "23467FHKLMQRTWXY"
	const mean = n * 5 / len(alphabet)
	for _, c := range []byte(alphabet) { // seven standard deviations and more
		if counts[c] < mean*7/8 || counts[c] > mean*9/8 {
			t.Errorf("%q came %d times, expected about %d", c, counts[c], mean)
		}
	}
}

func TestWithWritesToTheOtherStore(t *testing.T) {
	w := newWorld(t, withWorkflow(&formsvc.Workflow{Statuses: []string{"done"}, Final: []string{"done"}}))
	other := &watchedStore{Store: memory.New()}
	bound := w.svc.With(other)
	w.clock.add(time.Hour)
	a, err := bound.Accounts.Create(w.ctx, "first") // taken in the first store
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.Accounts.Get(w.ctx, a.ID); !errors.Is(err, formsvc.ErrNotFound) {
		t.Error("the first store has it:", err)
	}
	if a.CreatedAt != start().Add(time.Hour) || !strings.HasSuffix(string(a.ID), "000000000003") {
		t.Errorf("clock or generator are others: %+v", a)
	}
	c, err := bound.Campaigns.Create(w.ctx, a.ID, formsvc.CampaignInput{Title: "x"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := bound.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: ada()})
	if err != nil || r.Reference != "REF-00001" || len(other.take()) != 1 || len(w.store.take()) != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	_, err = bound.Responses.Update(w.ctx, r.Key(), formsvc.ResponsePatch{Status: new("completed")})
	wantFaults(t, err, "/status unknown_status")
}

// A rolled back transaction leaves nothing behind: neither service caches campaigns or keys for the
// other.
func TestWithCachesNothingForTheOtherStore(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	_, value := w.key(formsvc.FilesRead)
	w.submitted(&c)
	if _, err := w.svc.Keys.Authenticate(w.ctx, value); err != nil {
		t.Fatal(err)
	}

	bound := w.svc.With(w.store)
	w.store.disturb(nil)
	in := formsvc.ResponseInput{User: ada()}
	if _, err := bound.Responses.Create(w.ctx, c.Key(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := bound.Keys.Authenticate(w.ctx, value); err != nil {
		t.Fatal(err)
	}
	if w.store.count("Campaign") != 1 || w.store.count("KeyByHash") != 1 {
		t.Error("the bound service asked nothing")
	}

	w.store.disturb(nil)
	w.submitted(&c)
	if _, err := w.svc.Keys.Authenticate(w.ctx, value); err != nil {
		t.Fatal(err)
	}
	if w.store.count("Campaign") != 0 || w.store.count("KeyByHash") != 0 {
		t.Error("the service forgot")
	}
}

func TestCheckText(t *testing.T) {
	for _, c := range []struct {
		texts []string
		ok    bool
	}{
		{nil, true},
		{[]string{"", "a", "é\u200b\ufffe\U0010ffff\ufffd"}, true},
		{[]string{"a", "b\x00"}, false},
		{[]string{"\xff", "a"}, false},
		{[]string{"\xc0\x80"}, false},     // overlong NUL
		{[]string{"\xed\xa0\x80"}, false}, // surrogate
	} {
		err := formsvc.CheckText(c.texts...)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, formsvc.ErrInvalid) {
			t.Errorf("%q: %v", c.texts, err)
		}
	}
}

package formsvc_test

import (
	"context"
	"errors"
	"fmt"
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
		r, err = svc.Responses.Update(ctx, responseKey(&r), formsvc.ResponsePatch{Status: new("completed")})
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

// References of the same millisecond repeat like 20 random bits; those of different times within a
// quarter of an hour never repeat.
func TestReferencesRepeatAsChanceAllows(t *testing.T) {
	const n = 100_000
	repeats := func(at func(i int) time.Time) int {
		seen := make(map[string]bool, n)
		for i := range n {
			seen[formsvc.NewReference(at(i))] = true
		}
		return n - len(seen)
	}
	// n - N(1-(1-1/N)^n) for N = 2^20 is 4620, with a standard deviation under 70.
	if got := repeats(func(int) time.Time { return start() }); got > 4_620+7*70 {
		t.Errorf("%d repeats at one moment", got)
	}
	if got := repeats(func(i int) time.Time { return start().Add(time.Duration(i) * time.Millisecond) }); got > 0 {
		t.Errorf("%d repeats at moments of their own", got)
	}
	// Spread over months they repeat like 40 random bits: hardly ever.
	if got := repeats(func(i int) time.Time { return start().Add(time.Duration(i) * 123_457 * time.Millisecond) }); got > 3 {
		t.Errorf("%d repeats over months", got)
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
	_, err = bound.Responses.Update(w.ctx, responseKey(&r), formsvc.ResponsePatch{Status: new("completed")})
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

// Every method returns the store's error.
func TestStoreErrorsAreReturned(t *testing.T) {
	store := memory.New()
	svc, err := formsvc.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	id := formsvc.FloorID(start())
	campaign, response := formsvc.CampaignKey{AccountID: id, ID: id}, formsvc.ResponseKey{AccountID: id, CampaignID: id, ID: id}
	hook := formsvc.WebhookKey{AccountID: id, ID: id}
	delivery := formsvc.DeliveryKey{AccountID: id, ID: id}
	input := formsvc.WebhookInput{URL: "http://a", Events: created()}
	random := strings.Repeat("0", 43)
	calls := map[string]func(context.Context) error{
		"Accounts.Create": func(ctx context.Context) error { return second(svc.Accounts.Create(ctx, "a")) },
		"Accounts.ByName": func(ctx context.Context) error { return second(svc.Accounts.ByName(ctx, "a")) },
		"Accounts.Get":    func(ctx context.Context) error { return second(svc.Accounts.Get(ctx, id)) },
		"Accounts.List":   func(ctx context.Context) error { return second(svc.Accounts.List(ctx)) },
		"Keys.Create": func(ctx context.Context) error {
			_, _, err := svc.Keys.Create(ctx, id, formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
			return err
		},
		"Keys.List":   func(ctx context.Context) error { return second(svc.Keys.List(ctx, id)) },
		"Keys.Revoke": func(ctx context.Context) error { return svc.Keys.Revoke(ctx, id, id) },
		"Keys.Authenticate": func(ctx context.Context) error {
			return second(svc.Keys.Authenticate(ctx, "formsvc_"+random+checksum(random)))
		},
		"Campaigns.Create": func(ctx context.Context) error {
			return second(svc.Campaigns.Create(ctx, id, formsvc.CampaignInput{Title: "x"}))
		},
		"Campaigns.Replace": func(ctx context.Context) error {
			return second(svc.Campaigns.Replace(ctx, campaign, formsvc.CampaignInput{Title: "x"}, 0))
		},
		"Campaigns.Get":  func(ctx context.Context) error { return second(svc.Campaigns.Get(ctx, campaign)) },
		"Campaigns.List": func(ctx context.Context) error { return second(svc.Campaigns.List(ctx, formsvc.CampaignQuery{})) },
		"Responses.Create": func(ctx context.Context) error {
			return second(svc.Responses.Create(ctx, formsvc.CampaignKey{AccountID: id, ID: id}, formsvc.ResponseInput{User: ada()}))
		},
		"Responses.Update": func(ctx context.Context) error {
			return second(svc.Responses.Update(ctx, response, formsvc.ResponsePatch{}))
		},
		"Responses.Get":  func(ctx context.Context) error { return second(svc.Responses.Get(ctx, response)) },
		"Responses.List": func(ctx context.Context) error { return second(svc.Responses.List(ctx, formsvc.ResponseQuery{})) },
		"Webhooks.Create": func(ctx context.Context) error {
			_, _, err := svc.Webhooks.Create(ctx, id, input)
			return err
		},
		"Webhooks.Replace":     func(ctx context.Context) error { return second(svc.Webhooks.Replace(ctx, hook, input, 0)) },
		"Webhooks.Rotate":      func(ctx context.Context) error { return second(svc.Webhooks.Rotate(ctx, hook, formsvc.Rotation{})) },
		"Webhooks.SetDisabled": func(ctx context.Context) error { return second(svc.Webhooks.SetDisabled(ctx, hook, true)) },
		"Webhooks.Test":        func(ctx context.Context) error { return second(svc.Webhooks.Test(ctx, hook)) },
		"Webhooks.Get":         func(ctx context.Context) error { return second(svc.Webhooks.Get(ctx, hook)) },
		"Webhooks.List":        func(ctx context.Context) error { return second(svc.Webhooks.List(ctx, id)) },
		"Webhooks.Delete":      func(ctx context.Context) error { return svc.Webhooks.Delete(ctx, hook) },
		"Deliveries.List":      func(ctx context.Context) error { return second(svc.Deliveries.List(ctx, formsvc.DeliveryQuery{})) },
		"Deliveries.Get":       func(ctx context.Context) error { return second(svc.Deliveries.Get(ctx, delivery)) },
		"Deliveries.Redeliver": func(ctx context.Context) error { return second(svc.Deliveries.Redeliver(ctx, delivery)) },
		"Deliveries.RedeliverFailed": func(ctx context.Context) error {
			return second(svc.Deliveries.RedeliverFailed(ctx, hook, start()))
		},
		"Deliveries.Stats": func(ctx context.Context) error { return second(svc.Deliveries.Stats(ctx)) },
		"Events.List":      func(ctx context.Context) error { return second(svc.Events.List(ctx, formsvc.EventQuery{})) },
		"Notices.List":     func(ctx context.Context) error { return second(svc.Notices.List(ctx, formsvc.NoticeQuery{})) },
		"Notices.Digests":  func(ctx context.Context) error { return second(svc.Notices.Digests(ctx, 1)) },
		"Notices.Sent":     func(ctx context.Context) error { return svc.Notices.Sent(ctx, formsvc.Digest{}) },
		"Prune":            func(ctx context.Context) error { return second(svc.Prune(ctx)) },
		"Accounts.SetContact": func(ctx context.Context) error {
			return second(svc.Accounts.SetContact(ctx, id, "ada@example.com"))
		},
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, call := range calls {
		if err := call(ended); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "formsvc: ") {
			t.Errorf("%s with a context that ended: %v", name, err)
		}
	}
	_ = store.Close()
	for name, call := range calls {
		if err := call(ctx); !errors.Is(err, formsvc.ErrStoreClosed) || !strings.HasPrefix(err.Error(), "formsvc: ") {
			t.Errorf("%s on a closed store: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

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

func TestValidationErrorText(t *testing.T) {
	e := &formsvc.ValidationError{}
	if e.Error() != "invalid input" {
		t.Error(e)
	}
	e.Fields = []formsvc.FieldError{{Pointer: "/a", Code: "x", Detail: "is bad"}, {Pointer: "", Code: "y", Detail: "is worse"}}
	if e.Error() != "invalid input: /a: is bad; : is worse" {
		t.Error(e)
	}
	if err := fmt.Errorf("wrapped: %w", e); !errors.Is(err, formsvc.ErrInvalid) || errors.Is(err, formsvc.ErrNotFound) {
		t.Error("it is not ErrInvalid, or something else too")
	}
}

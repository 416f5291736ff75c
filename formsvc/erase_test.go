package formsvc_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func TestErasePerson(t *testing.T) {
	g := newGuestbook(t)
	audited := len(g.trail())
	receipt := g.erase()
	if countsOf(&receipt) != g.want || receipt.BlobsLeft != 0 || receipt.AccountID != g.account || receipt.FinishedAt.IsZero() {
		t.Errorf("the receipt is %+v\nwant %+v", receipt, g.want)
	}
	g.gone()
	if keys := g.shelf.keys(t); len(keys) != 0 {
		t.Errorf("blobs are left: %q", keys)
	}
	entries := g.trail()[audited:]
	if len(entries) != 2 || entries[0].Action != formsvc.AuditErasureBegun || entries[1].Action != formsvc.AuditErasureDone {
		t.Fatalf("the audit trail has %+v", entries)
	}
	for _, e := range entries {
		if e.Actor != "tester" || e.Target != receipt.ID {
			t.Errorf("an entry of %q about %s, want tester and %s", e.Actor, e.Target, receipt.ID)
		}
	}
	if d := entries[1].Details; d["responses"] != "3" || d["events"] != "8" || len(d) != 4 {
		t.Errorf("the entry counts %v", d)
	}
	if again := g.erase(); !again.IsZero() {
		t.Errorf("the second time it removed %+v", again)
	}
	g.gone()
}

func TestEraseRefusesInvalidInput(t *testing.T) {
	g := newGuestbook(t)
	audited := len(g.trail())
	for _, email := range []string{"", "eve", "@", "eve@", "Eve <eve@example.com>", "eve@example.com\x00", "\xff@example.com"} {
		_, err := g.svc.Accounts.ErasePerson(g.ctx, g.account, email)
		wantFaults(t, errors.Unwrap(err), "/email invalid_email")
	}
	wantError(t, failure(g.svc.Accounts.ErasePerson(g.ctx, someID, eve)), formsvc.ErrNotFound)
	// A person with the same address in another account is another person.
	before := g.traces(g.svc)
	receipt, err := g.svc.Accounts.ErasePerson(g.ctx, g.second(), eve)
	if err != nil || !receipt.IsZero() || g.traces(g.svc) != before {
		t.Errorf("something of the first account changed: %+v, %v", receipt, err)
	}
	_, err = g.svc.Campaigns.EraseOlder(g.ctx, g.campaigns[0].Key(), 0)
	wantFaults(t, errors.Unwrap(err), "/age invalid_value")
	if n := len(g.trail()); n != audited {
		t.Errorf("%d entries about what was refused", n-audited)
	}
}

var errFrail = errors.New("the store failed")

// Whichever call of the store fails, before or after its effect, a second run removes the rest.
func TestEraseContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			g := newGuestbook(t)
			var calls []string
			fail := func(method string) error {
				if calls = append(calls, method); len(calls) == n {
					return errFrail
				}
				return nil
			}
			if after {
				g.store.after = fail
			} else {
				g.store.disturb(func(method string, _ int) error { return fail(method) })
			}
			first, err := g.svc.Accounts.ErasePerson(g.ctx, g.account, eve)
			if err == nil {
				if want := 13; len(calls) != want { // otherwise a call is missing from those that fail
					t.Errorf("there were %d calls, want %d: %q", len(calls), want, calls)
				}
				break
			}
			wantError(t, err, errFrail)
			if !first.FinishedAt.IsZero() {
				t.Errorf("call %d, %s: it failed and has an end", n, calls[n-1])
			}
			sum, more := countsOf(&first), g.erase()
			sum.responses += more.Responses
			sum.files += more.Files
			sum.signatures += more.Signatures
			sum.events += more.Events
			if sum != g.want && !after {
				t.Errorf("call %d, %s: both removed %+v, want %+v", n, calls[n-1], sum, g.want)
			}
			g.gone()
		}
	}
}

// The end of the context stops an erasure between two atomic writes.
func TestEraseStopsWithItsContext(t *testing.T) {
	g := newGuestbook(t)
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	g.store.after = func(method string) error {
		if method == "Erase" {
			cancel()
		}
		return nil
	}
	receipt, err := g.svc.Accounts.ErasePerson(ctx, g.account, eve)
	wantError(t, err, context.Canceled)
	if receipt.Responses != 3 || receipt.Events == g.want.events {
		t.Errorf("it removed %+v, want what the first atomic write removes", receipt)
	}
	g.erase()
	g.gone()
}

// Blobs that can't be removed are counted, and removed by the sweep.
func TestEraseLeavesBlobsToTheSweep(t *testing.T) {
	g := newGuestbook(t)
	g.shelf.fail("Delete", errFrail)
	if receipt := g.erase(); receipt.BlobsLeft != 3 || receipt.Files != 3 {
		t.Errorf("the receipt is %+v", receipt)
	}
	g.shelf.disturb(nil)
	g.clock.add(2 * formsvc.SweepAge)
	if r, err := g.svc.Files.Sweep(g.ctx, nil); err != nil || r.Removed != 3 {
		t.Errorf("the sweep removed %+v, %v", r, err)
	}

	// In a transaction of the caller, which may be rolled back.
	g = newGuestbook(t)
	receipt, err := g.svc.With(g.store.Store).Accounts.ErasePerson(g.ctx, g.account, eve)
	if err != nil || receipt.BlobsLeft != 3 || len(g.shelf.keys(t)) != 3 {
		t.Errorf("the receipt is %+v, %v", receipt, err)
	}
}

// The result of a call about a signature is erased, even if the event was pruned before.
func TestEraseRepliesWithoutTheirEvents(t *testing.T) {
	w := newWorld(t, func(o *formsvc.Options) { o.Retention = time.Hour })
	c := w.campaign()
	r := w.submitted(&c)
	svc, _ := w.once("k")
	sign := func() (formsvc.Signature, error) {
		return svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: formsvc.User{Email: eve}})
	}
	must(sign())
	w.clock.add(2 * time.Hour)
	must(w.svc.Prune(w.ctx))
	if receipt, err := w.svc.Accounts.ErasePerson(w.ctx, w.account, eve); err != nil || receipt.Signatures != 1 || receipt.Events != 0 {
		t.Errorf("%+v, %v", receipt, err)
	}
	wantError(t, failure(sign()), formsvc.ErrErased)
}

// Erasure and retention raise the event of a deletion, for webhooks that name it, unless the response was held.
func TestErasureRaisesDeletions(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	named := w.hook(func(in *formsvc.WebhookInput) { in.Events = []formsvc.EventType{webhook.ResponseDeleted} })
	deleted := func() (ids []formsvc.ID) {
		for _, e := range w.events() {
			if e.Type == webhook.ResponseDeleted {
				ids = append(ids, e.ResponseID)
			}
		}
		return ids
	}
	first := w.submitted(&c)
	must(w.svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: ada(), Held: formsvc.HeldTrap}))
	must(w.svc.Accounts.ErasePerson(w.ctx, w.account, ada().Email))
	again := must(w.svc.Accounts.ErasePerson(w.ctx, w.account, ada().Email))
	if got := deleted(); !slices.Equal(got, []formsvc.ID{first.ID}) || w.deliveries(&named, "") != 1 || !again.IsZero() {
		t.Errorf("erasure raised %v, want %s; again %+v", got, first.ID, again)
	}
	second := w.submitted(&c)
	w.clock.add(time.Hour)
	must(w.svc.Campaigns.EraseOlder(w.ctx, c.Key(), time.Minute))
	if got := deleted(); !slices.Equal(got, []formsvc.ID{first.ID, second.ID}) || w.deliveries(&named, "") != 2 {
		t.Errorf("then retention raised %v, want %s", got, second.ID)
	}
}

// Every atomic write is small, however much there is to erase.
func TestErasureWritesInSmallBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.campaign()
	const n = 250
	for range n - 3 {
		w.submitted(&c)
	}
	for range 3 { // which don't fit on one page
		w.submitted(&c, answer("a", strings.Repeat("x", 3<<20)))
	}
	receipt, err := w.svc.Accounts.ErasePerson(w.ctx, w.account, ada().Email)
	if calls := w.store.count("Erase"); err != nil || receipt.Responses != n || receipt.Events != n || calls != 4 || w.store.large > 100 || !w.store.last.Refusals {
		t.Errorf("%+v, %v, in %d atomic writes of up to %d records", receipt, err, calls, w.store.large)
	}
}

func TestOlderErasesOldResponses(t *testing.T) {
	g := newGuestbook(t)
	c := g.campaign()
	g.clock.add(time.Hour)
	var made []formsvc.Response
	for range 4 {
		made = append(made, g.submitted(&c))
		g.clock.add(time.Minute)
	}
	g.attach(&made[0])
	blobs := len(g.shelf.keys(t))
	g.submitted(&c)
	age := g.clock.Now().Sub(made[2].CreatedAt) // exactly that old, so it stays
	audited := len(g.trail())
	receipt, err := g.svc.As(formsvc.Actor{Name: "tester"}).Campaigns.EraseOlder(g.ctx, c.Key(), age)
	want := counts{responses: 2, files: 1, events: 4}
	if err != nil || countsOf(&receipt) != want || receipt.CampaignID != c.ID || !receipt.Before.Equal(made[2].CreatedAt) {
		t.Errorf("%+v, %v; want %+v", receipt, err, want)
	}
	got, err := g.svc.Campaigns.Get(g.ctx, c.Key())
	if err != nil || got.ResponseCount != 3 || len(g.shelf.keys(t)) != blobs-1 {
		t.Errorf("%d responses and %d blobs are left, %v", got.ResponseCount, len(g.shelf.keys(t)), err)
	}
	entries := g.trail()[audited:]
	begun, done := entries[0], entries[1]
	if begun.Action != formsvc.AuditRetentionBegun || done.Action != formsvc.AuditRetentionDone || begun.Target != c.ID || done.Target != c.ID ||
		begun.Actor != "tester" || done.Details["responses"] != "2" || begun.Details["before"] != "2026-11-21T09:32:00Z" {
		t.Errorf("the audit trail has %+v", entries)
	}
	for i, r := range made {
		_, err := g.svc.Responses.Get(g.ctx, r.Key())
		equal(t, errors.Is(err, formsvc.ErrNotFound), i < 2, "response %d: %v isn't found: %t", i, err)
	}
	for i := range g.others {
		if _, err := g.svc.Responses.Get(g.ctx, g.others[i].Key()); err != nil {
			t.Errorf("a response of another campaign: %v", err)
		}
	}
}

// An invalid actor never fails the call.
func TestInvalidActorNeverFailsTheCall(t *testing.T) {
	w := newWorld(t)
	for actor, want := range map[string]string{
		"cli \x00\xffeve": "cli eve", strings.Repeat("ü", 150): strings.Repeat("ü", 100), "x" + strings.Repeat("ü", 150): "x" + strings.Repeat("ü", 99),
	} {
		w.svc = w.svc.As(formsvc.Actor{Name: actor})
		w.key(formsvc.FilesRead)
		if trail := w.trail(); trail[len(trail)-1].Actor != want {
			t.Errorf("the actor %q became %q", actor, trail[len(trail)-1].Actor)
		}
	}
}

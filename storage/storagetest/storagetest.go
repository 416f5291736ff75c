// Package storagetest checks stores against the contract of [formsvc.Store] and [delivery.Queue]. If you write or wrap
// a store, run it from a test:
//
//	func TestStore(t *testing.T) {
//		storagetest.Run(t, func(t testing.TB) storagetest.Store {
//			s := open(t) // an empty store, one that no other test uses
//			t.Cleanup(func() { _ = s.Close() })
//			return s
//		}, storagetest.Options{
//			Except: map[storagetest.Category]string{
//				storagetest.Durability: "it keeps everything in memory",
//				storagetest.Handles:    "nothing else can open what it keeps",
//			},
//		})
//	}
//
// The suite doesn't know which store it tests, checks no durations, and uses only the standard library.
package storagetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Store is a store that the suite tests. Close may be called twice, and during other calls.
type Store interface {
	formsvc.Store
	delivery.Queue
	Close() error
}

// A Category is a group of tests that can be excepted. It is also the name of the subtest.
type Category string

// The categories.
const (
	Records      Category = "records"      // records are read back as they were written, field by field
	Texts        Category = "texts"        // any text is stored byte for byte, or refused
	Isolation    Category = "isolation"    // unknown records and those of other accounts are not found
	Conflicts    Category = "conflicts"    // unique values
	Lists        Category = "lists"        // order, pages and totals
	Filters      Category = "filters"      // agreement with formsvc.ResponseFilter.Match
	Updates      Category = "updates"      // a read, a decision and a write are atomic
	Files        Category = "files"        // files, and identifiers barred from use
	Comments     Category = "comments"     // comments on responses
	Signatures   Category = "signatures"   // signatures of responses
	Deletion     Category = "deletion"     // which records are deleted with a response
	Outbox       Category = "outbox"       // events and deliveries commit with the change
	Webhooks     Category = "webhooks"     // the limit, existing subscriptions, and the deletion of deliveries
	Ready        Category = "ready"        // which endpoints have work, and their settings
	Claims       Category = "claims"       // which deliveries are claimed
	Outcomes     Category = "outcomes"     // the effects of finishing a claim, and when it is refused
	Attempts     Category = "attempts"     // the log of a delivery
	Redelivery   Category = "redelivery"   // deliveries sent again on request
	TestEvents   Category = "test events"  // events for testing a webhook
	Notices      Category = "notices"      // notices of permanent failures, each given once
	Digests      Category = "digests"      // periodic summaries of failures
	Feed         Category = "feed"         // events in commit order
	Events       Category = "events"       // single events, the newest ones, and those about a response
	Idempotency  Category = "idempotency"  // stored replies for idempotent retries
	Pruning      Category = "pruning"      // deletion by age
	Stats        Category = "stats"        // backlogs
	Waiting      Category = "waiting"      // no wake-up is lost
	Erasure      Category = "erasure"      // what erasing a person removes, and what it keeps
	Audit        Category = "audit"        // the append-only audit trail
	Quota        Category = "quota"        // requests are counted, and each is granted once
	Sessions     Category = "sessions"     // sessions, and sign-in links
	Identity     Category = "identity"     // the identity of a store's data
	Concurrency  Category = "concurrency"  // many concurrent transactions; each fails alone
	Cancellation Category = "cancellation" // the effects of a context that ends
	Closing      Category = "closing"      // use after Close
	Durability   Category = "durability"   // data outlives Close; needs Options.Reopen
	Handles      Category = "handles"      // two stores over the same data; needs Options.Reopen
)

// Options configures [Run].
type Options struct {
	// Except names the categories to skip, each with a reason, which is logged. Defaults to none.
	Except map[Category]string
	// Reopen opens the data of s a second time and registers its own cleanup. s was opened for the same test, and may
	// be closed by then. Without Reopen, you must except Durability and Handles.
	Reopen func(t testing.TB, s Store) Store
}

// A group has the tests of a category.
type group struct {
	category Category
	tests    []test
}

// A test gets a world with an empty store.
type test struct {
	name string
	run  func(w *world)
}

// Run tests the stores that open returns. open returns an empty store and registers its own cleanup. Every test gets
// its own store, and tests run in parallel.
func Run(t *testing.T, open func(t testing.TB) Store, opts Options) {
	t.Helper()
	if err := opts.check(); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups() {
		if reason, ok := opts.Except[g.category]; ok {
			t.Logf("excepted: %s: %s", g.category, reason)
			continue
		}
		t.Run(string(g.category), func(t *testing.T) {
			t.Parallel()
			for _, test := range g.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(newWorld(t, open, opts.Reopen))
				})
			}
		})
	}
}

// check returns an error if a category would be left out by mistake.
func (o *Options) check() error {
	known := make(map[Category]bool)
	for _, g := range groups() {
		known[g.category] = true
	}
	for _, category := range slices.Sorted(maps.Keys(o.Except)) {
		if !known[category] {
			return fmt.Errorf("storagetest: there is no category %q to except", category)
		}
		if o.Except[category] == "" {
			return fmt.Errorf("storagetest: category %q is excepted without a reason", category)
		}
	}
	for _, category := range []Category{Durability, Handles} {
		if o.Reopen == nil && o.Except[category] == "" {
			return fmt.Errorf("storagetest: category %q needs Options.Reopen, or a reason to be excepted", category)
		}
	}
	return nil
}

func groups() []group {
	return []group{
		{Records, recordTests()},
		{Texts, textTests()},
		{Isolation, isolationTests()},
		{Conflicts, conflictTests()},
		{Lists, listTests()},
		{Filters, filterTests()},
		{Updates, updateTests()},
		{Files, fileTests()},
		{Comments, commentTests()},
		{Signatures, signatureTests()},
		{Deletion, deletionTests()},
		{Outbox, outboxTests()},
		{Webhooks, webhookTests()},
		{Ready, readyTests()},
		{Claims, claimTests()},
		{Outcomes, outcomeTests()},
		{Attempts, attemptTests()},
		{Redelivery, redeliveryTests()},
		{TestEvents, testEventTests()},
		{Notices, noticeTests()},
		{Digests, digestTests()},
		{Feed, slices.Concat(feedTests(), feedOrderTests(), wholeFeedTests())},
		{Events, eventTests()},
		{Idempotency, idempotencyTests()},
		{Pruning, pruneTests()},
		{Stats, statsTests()},
		{Waiting, waitTests()},
		{Erasure, erasureTests()},
		{Audit, auditTests()},
		{Quota, quotaTests()},
		{Sessions, sessionTests()},
		{Identity, identityTests()},
		{Concurrency, concurrencyTests()},
		{Cancellation, cancelTests()},
		{Closing, closeTests()},
		{Durability, durabilityTests()},
		{Handles, handleTests()},
	}
}

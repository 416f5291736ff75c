// Package storagetest holds stores to the contract of [formsvc.Store] and
// [delivery.Queue]. Whoever writes a store, or wraps one, runs it from a test:
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
// The suite never asks which store it tests, asserts nothing about how long
// anything takes, and uses only the standard library.
package storagetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Store is what the suite tests. Close may be called twice, and during other
// calls.
type Store interface {
	formsvc.Store
	delivery.Queue
	Close() error
}

// A Category is a group of tests that a store can be excepted from. Its name is
// also the name of the subtest.
type Category string

// The categories.
const (
	Records      Category = "records"      // what is written is read back, field by field
	Texts        Category = "texts"        // any text is kept byte by byte, or refused
	Isolation    Category = "isolation"    // unknown records and those of others are not found
	Conflicts    Category = "conflicts"    // unique values
	Lists        Category = "lists"        // order, pages and totals
	Filters      Category = "filters"      // agreement with formsvc.ResponseFilter.Match
	Updates      Category = "updates"      // reading, deciding and writing as one unit
	Files        Category = "files"        // what is known of files, and identifiers that none may have
	Comments     Category = "comments"     // what is noted about responses
	Signatures   Category = "signatures"   // who signed responses, and what
	Deletion     Category = "deletion"     // what goes with a response, and what stays
	Outbox       Category = "outbox"       // events and deliveries commit with the change
	Webhooks     Category = "webhooks"     // the limit, subscribing twice, and the end of deliveries with the webhook
	Ready        Category = "ready"        // which endpoints have work, and what they say
	Claims       Category = "claims"       // which deliveries are claimed
	Outcomes     Category = "outcomes"     // what finishing a claim does, and when it is refused
	Attempts     Category = "attempts"     // the log of a delivery
	Redelivery   Category = "redelivery"   // what is sent again by hand
	TestEvents   Category = "test events"  // events that try a webhook
	Notices      Category = "notices"      // what tells of final failures, once
	Digests      Category = "digests"      // failures summed up, once in a while
	Feed         Category = "feed"         // events in the order of their commits
	Events       Category = "events"       // one event, the newest, and those about a response
	Idempotency  Category = "idempotency"  // answers to calls that may be repeated
	Pruning      Category = "pruning"      // what is deleted for its age
	Stats        Category = "stats"        // how much is waiting
	Waiting      Category = "waiting"      // no wake-up is lost
	Erasure      Category = "erasure"      // what goes of people, and what stays
	Audit        Category = "audit"        // who did what, which only grows
	Quota        Category = "quota"        // requests are counted, and granted once
	Sessions     Category = "sessions"     // who is signed in, and the links that sign in
	Identity     Category = "identity"     // what tells one store's data from another's
	Concurrency  Category = "concurrency"  // many units at once; each fails alone
	Cancellation Category = "cancellation" // what a context that ends does
	Closing      Category = "closing"      // use after Close
	Durability   Category = "durability"   // data outlives Close; needs Options.Reopen
	Handles      Category = "handles"      // two stores over the same data; needs Options.Reopen
)

// Options are the optional settings of [Run].
type Options struct {
	// Except names the categories that are not run, each with the reason, which
	// is logged. Defaults to none.
	Except map[Category]string
	// Reopen opens the data of s a second time and registers its own cleanup. s
	// is a store that open made for the same test; it may be closed by then.
	// Without Reopen, Durability and Handles must be excepted.
	Reopen func(t testing.TB, s Store) Store
}

// A group is the tests of a category.
type group struct {
	category Category
	tests    []test
}

// A test is given a world with an empty store.
type test struct {
	name string
	run  func(w *world)
}

// Run tests the stores that open makes. open returns an empty store and
// registers its own cleanup; every test gets a store of its own, and tests run
// in parallel.
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

// check returns an error when a category would be left out by mistake.
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

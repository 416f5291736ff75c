// Package storagetest checks stores against the contract of [formsvc.Store] and [delivery.Queue]. If you write or wrap
// a store, run it from a test:
//
//	func TestStore(t *testing.T) {
//		storagetest.Run(t, func(t testing.TB) storagetest.Store {
//			s := open(t) // an empty store, one that no other test uses
//			t.Cleanup(func() { _ = s.Close() })
//			return s
//		}, storagetest.Options{})
//	}
//
// The suite doesn't know which store it tests, and checks no durations. Most of it is a model: random calls must have the
// same results as on storage/memory (see pgregory.net/rapid, whose flags apply).
package storagetest

import (
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

// A Category is a group of tests. It is also the name of the subtest.
type Category string

// The categories.
const (
	Model        Category = "model"        // random histories have the results that the memory store has
	Golden       Category = "golden"       // what the contract means, by example
	Texts        Category = "texts"        // any text is stored byte for byte, or refused
	Isolation    Category = "isolation"    // unknown records and those of other accounts are not found
	Concurrency  Category = "concurrency"  // concurrent calls, and waiting for work
	Cancellation Category = "cancellation" // the effects of a context that ends
	Closing      Category = "closing"      // use after Close
	Durability   Category = "durability"   // data outlives Close; needs Options.Reopen
	Handles      Category = "handles"      // two stores over the same data; needs Options.Reopen
)

// Options are the optional settings of [Run].
type Options struct {
	// Reopen opens the data of s a second time and registers its own cleanup. s was opened for the same test, and may
	// be closed by then. Without Reopen, Durability and Handles are skipped, which is right only for a store in memory.
	Reopen func(t testing.TB, s Store) Store
	// Checks is the number of random histories of Model. Defaults to 60.
	Checks int
	// Only runs these categories alone. Defaults to all.
	Only []Category
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
	for _, g := range groups(opts.Checks) {
		if len(opts.Only) > 0 && !slices.Contains(opts.Only, g.category) {
			continue
		}
		t.Run(string(g.category), func(t *testing.T) {
			t.Parallel()
			if opts.Reopen == nil && (g.category == Durability || g.category == Handles) {
				t.Skip("Options.Reopen is not set")
			}
			for _, test := range g.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(newWorld(t, open, opts.Reopen))
				})
			}
		})
	}
}

// groups returns all tests.
func groups(checks int) []group {
	return []group{
		{Model, []test{{"histories", func(w *world) { testModel(w, checks, nil) }}}},
		{Golden, []test{ // what the contract means by example, or what would be too much for the model
			{"existing event", testEventTwice},
			{"events for each file", testEventPerFile},
			{"a response as result", testResult},
			{"inputs are copied", testInputsCopied},
			{"many file identifiers", script(manyFileIDs)},
			{"a large batch of outcomes", script(manyOutcomes)},
			{"a large erasure", script(manyErased)},
			{"events of all accounts", testWholeFeed},
			{"newest events among test events", script(recentBehindTests)},
			{"events end at a byte limit", script(eventBytes)},
			{"quotas of many windows", script(manyQuotas)},
			{"each store has its own identity", testIdentity},
			{"a deleted account", testDeletedAccount},
			{"imported responses", testImport},
			{"limited places", testPlaces},
		}},
		{Texts, []test{
			{"any text is kept and found", script(textsKept)},
			{"text that can't be kept is refused", testTextsRefused},
			{"the longest texts", script(longTexts)},
		}},
		{Isolation, []test{{"foreign and unknown records are not found", testIsolation}}},
		{Concurrency, concurrencyTests()},
		{Cancellation, []test{
			{"context ended before the call", testCancelledBefore},
			{"context ends during calls", testCancelDuring},
		}},
		{Closing, []test{
			{"every call fails after Close", testUseAfterClose},
			{"Close during calls", func(w *world) { w.closeDuringCalls(w.addScene()) }},
		}},
		{Durability, []test{
			{"histories survive Close", func(w *world) { testModel(w, 8, (*model).reopen) }},
			{"acknowledged writes survive Close", testAcknowledgedSurvives},
		}},
		{Handles, handleTests()},
	}
}

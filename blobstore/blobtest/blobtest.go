// Package blobtest tests blob stores against the contract of [blobstore.Store]. If you write or
// wrap a store, run it from a test:
//
//	func TestStore(t *testing.T) {
//		blobtest.Run(t, func(t testing.TB) blobstore.Store {
//			s := open(t) // an empty store, one that no other test uses
//			t.Cleanup(func() { _ = s.Close() })
//			return s
//		}, blobtest.Options{
//			Except: map[blobtest.Category]string{
//				blobtest.Durability: "it keeps everything in memory",
//				blobtest.Cleaning:   "a Put that is cut off leaves nothing behind",
//			},
//		})
//	}
//
// The suite doesn't depend on the store that it tests, asserts no durations, and uses only the
// standard library. It needs some 100 MB of memory and of space in the store. No test uses a key
// that is a parent of another one: a store may refuse that.
package blobtest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
)

// A Category is a group of tests that a store can skip. Its name is also the name of the subtest.
type Category string

// The categories.
const (
	RoundTrips   Category = "round trips"  // what is put is read back, with a correct Info
	Ranges       Category = "ranges"       // parts of blobs
	Keys         Category = "keys"         // which keys are allowed, and that they are independent
	Conflicts    Category = "conflicts"    // taken keys, also with concurrent Puts
	Missing      Category = "missing"      // blobs that don't exist or were deleted
	Failures     Category = "failures"     // failing readers leave nothing behind
	Visibility   Category = "visibility"   // a blob is visible completely or not at all
	Cancellation Category = "cancellation" // contexts that end
	Lists        Category = "lists"        // prefixes, many keys, stopping early
	Concurrency  Category = "concurrency"  // many calls at once
	Durability   Category = "durability"   // a second store over the same data; needs Options.Reopen
	Cleaning     Category = "cleaning"     // remains of interrupted Puts; needs Options.CutOff
)

// Options are the optional settings of [Run].
type Options struct {
	// Except names the skipped categories, each with the reason, which is logged. Defaults to none.
	Except map[Category]string
	// Reopen opens the data of s a second time and registers its own cleanup. s is a store that
	// open returned for the same test, and stays open. Without Reopen, Except must name Durability.
	Reopen func(t testing.TB, s blobstore.Store) blobstore.Store
	// CutOff creates the remains of one interrupted Put in s. s is a store that open returned for
	// the same test, and a [blobstore.Cleaner]. Without CutOff, Except must name Cleaning.
	CutOff func(t testing.TB, s blobstore.Store)
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

// Run tests the stores that open returns. open must return an empty store and register its own
// cleanup. Every test gets its own store, and tests run in parallel.
func Run(t *testing.T, open func(t testing.TB) blobstore.Store, opts Options) {
	t.Helper()
	if err := opts.check(); err != nil {
		t.Fatal(err)
	}
	block := sync.OnceValue(newBlock)
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
					test.run(&world{T: t, ctx: t.Context(), store: open(t), opts: &opts, block: block})
				})
			}
		})
	}
}

// check returns an error if a category would be skipped by mistake.
func (o *Options) check() error {
	known := make(map[Category]bool)
	for _, g := range groups() {
		known[g.category] = true
	}
	for _, category := range slices.Sorted(maps.Keys(o.Except)) {
		if !known[category] {
			return fmt.Errorf("blobtest: there is no category %q to except", category)
		}
		if o.Except[category] == "" {
			return fmt.Errorf("blobtest: category %q is excepted without a reason", category)
		}
	}
	if o.Reopen == nil && o.Except[Durability] == "" {
		return fmt.Errorf("blobtest: category %q needs Options.Reopen, or a reason to be excepted", Durability)
	}
	if o.CutOff == nil && o.Except[Cleaning] == "" {
		return fmt.Errorf("blobtest: category %q needs Options.CutOff, or a reason to be excepted", Cleaning)
	}
	return nil
}

func groups() []group {
	return []group{
		{RoundTrips, roundTripTests()},
		{Ranges, rangeTests()},
		{Keys, keyTests()},
		{Conflicts, conflictTests()},
		{Missing, missingTests()},
		{Failures, failureTests()},
		{Visibility, visibilityTests()},
		{Cancellation, cancelTests()},
		{Lists, listTests()},
		{Concurrency, concurrencyTests()},
		{Durability, durabilityTests()},
		{Cleaning, cleanTests()},
	}
}

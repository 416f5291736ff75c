// Package blobtest tests blob stores against the contract of [blobstore.Store]. If you write or
// wrap a store, run it from a test:
//
//	func TestStore(t *testing.T) {
//		blobtest.Run(t, func(t testing.TB) blobstore.Store {
//			s := open(t) // an empty store, one that no other test uses
//			t.Cleanup(func() { _ = s.Close() })
//			return s
//		}, blobtest.Options{})
//	}
//
// The suite doesn't depend on the store that it tests, asserts no durations, and uses only the
// standard library. It needs some 100 MB of memory and of space in the store. No test uses a key
// that is a parent of another one: a store may refuse that.
package blobtest

import (
	"testing"

	"github.com/formsvc/toolkit/blobstore"
)

// Options are the optional settings of [Run].
type Options struct {
	// Reopen opens the data of s a second time and registers its own cleanup. s is a store that
	// open returned for the same test, and stays open. Without Reopen, tests of durability are
	// skipped, which is right only for a store in memory.
	Reopen func(t testing.TB, s blobstore.Store) blobstore.Store
	// CutOff creates the remains of one interrupted Put in s. s is a store that open returned for
	// the same test, and a [blobstore.Cleaner]. Without CutOff, tests of cleaning are skipped, which
	// is right only for a store whose Puts leave nothing behind.
	CutOff func(t testing.TB, s blobstore.Store)
}

// cases are the subtests. Each gets a world with an empty store.
var cases = []struct {
	name string
	run  func(w *world)
}{
	{"sizes and readers", testSizes},
	{"a closed reader", testClosedReader},
	{"ranges", testRanges},
	{"good keys", testGoodKeys},
	{"bad keys", testBadKeys},
	{"missing keys", testMissing},
	{"taken keys", testTaken},
	{"concurrent Puts of a key", func(w *world) { w.race(w.store, w.store) }},
	{"concurrent Puts of a key through two stores", func(w *world) { w.race(w.store, w.reopen()) }},
	{"invisible during Put", testInvisible},
	{"readers that fail", testFailing},
	{"Delete during reading", testReadDeleted},
	{"ended contexts", testEndedContext},
	{"context ends during Put", testCancelPut},
	{"context ends during reading", testCancelRead},
	{"prefixes", testPrefixes},
	{"many keys", testManyKeys},
	{"part of a list", testStopList},
	{"a second store", testReopen},
	{"Clean", testClean},
	{"Clean during Put", testCleanMeanwhile},
}

// Run tests the stores that open returns. open must return an empty store and register its own
// cleanup. Every test gets its own store, and tests run in parallel.
func Run(t *testing.T, open func(t testing.TB) blobstore.Store, opts Options) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&world{T: t, ctx: t.Context(), store: open(t), opts: opts})
		})
	}
}

package formsvc_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// unmark removes the marker, as if an earlier release had used the blob store.
func (w *fileWorld) unmark() {
	w.tb.Helper()
	wantError(w.tb, w.shelf.Delete(w.ctx, formsvc.MarkerKey), nil)
}

// owner returns the identity of the blob store's owner.
func (w *fileWorld) owner() formsvc.ID {
	w.tb.Helper()
	id, err := formsvc.BlobOwner(w.ctx, w.shelf)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.tb.Fatal(err)
	}
	return id
}

// A database that knows none of the files neither removes nor adds any.
func TestBlobsOfAnotherDatabaseAreRefused(t *testing.T) {
	for name, prepare := range map[string]func(*fileWorld){
		"claimed":                     func(*fileWorld) {},
		"used by an earlier release":  (*fileWorld).unmark,
		"claimed, of an unknown form": func(w *fileWorld) { w.unmark(); w.mark("a marker of a later release, perhaps") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFileWorld(t)
			for i := range 3 {
				w.uploaded(pattern(10 + i))
			}
			prepare(w)
			owner, _ := formsvc.BlobOwner(w.ctx, w.shelf)
			before := w.shelf.keys(t)
			w.clock.add(2 * formsvc.SweepAge)

			other := newFileWorld(t) // over other data with the same blob store
			other.shelf, other.clock = w.shelf, w.clock
			other.svc = other.again()
			wantError(t, other.svc.Files.Claim(other.ctx, &formsvc.ClaimOptions{DryRun: true}), formsvc.ErrOtherBlobs)
			for _, opts := range []*formsvc.SweepOptions{nil, {DryRun: true}, {Force: true}} {
				wantError(t, failure(other.svc.Files.Sweep(other.ctx, opts)), formsvc.ErrOtherBlobs)
			}
			wantError(t, failure(other.upload(formsvc.FileInput{Content: bytes.NewReader(pattern(10))})), formsvc.ErrOtherBlobs)
			equalAll(t, w.shelf.keys(t), before, "there was %q, and is %q", before)
			if got, _ := formsvc.BlobOwner(w.ctx, w.shelf); got != owner {
				t.Errorf("the blobs belonged to %q, and belong to %q", owner, got)
			}
		})
	}
}

// mark writes a marker with that text.
func (w *fileWorld) mark(text string) {
	w.tb.Helper()
	must(w.shelf.Put(w.ctx, formsvc.MarkerKey, strings.NewReader(text)))
}

// again returns the service of a restarted program.
func (w *fileWorld) again() *formsvc.Service {
	return must(formsvc.New(w.store, &formsvc.Options{Blobs: w.shelf, Now: w.clock.Now}))
}

// Files of an earlier release are adopted, whatever else is in the blob store.
func TestBlobsOfAnEarlierReleaseAreAdopted(t *testing.T) {
	w := newFileWorld(t)
	f := w.uploaded(pattern(10))
	for i := range 20 {
		w.orphan(i)
	}
	w.unmark()
	must(w.svc.Files.Sweep(w.ctx, &formsvc.SweepOptions{DryRun: true}))
	wantError(t, w.svc.Files.Claim(w.ctx, &formsvc.ClaimOptions{DryRun: true}), nil)
	equal(t, w.owner(), "", "a dry run made the blobs those of %q")
	wantError(t, w.svc.Files.Claim(w.ctx, nil), nil)
	equal(t, w.owner(), must(w.store.Identity(w.ctx)), "the blobs belong to %q")
	must(w.read(&f, 0, -1))
	w.clock.add(2 * formsvc.SweepAge)
	if got := w.sweep(nil); got.Removed != 20 || got.Blobs != 21 {
		t.Errorf("%+v", got)
	}
}

// A blob store that was replaced while the program runs isn't swept.
func TestEachSweepChecksTheOwner(t *testing.T) {
	w := newFileWorld(t)
	w.uploaded(pattern(10))
	must(w.svc.Files.Sweep(w.ctx, nil))
	theirs := newFileWorld(t)
	theirs.uploaded(pattern(10))
	before := theirs.shelf.keys(t)
	w.shelf.Store = theirs.shelf.Store
	w.shelf.made = theirs.shelf.made
	w.clock.add(2 * formsvc.SweepAge)
	wantError(t, failure(w.svc.Files.Sweep(w.ctx, &formsvc.SweepOptions{Force: true})), formsvc.ErrOtherBlobs)
	wantError(t, failure(w.upload(formsvc.FileInput{Content: bytes.NewReader(pattern(10))})), formsvc.ErrOtherBlobs)
	equalAll(t, theirs.shelf.keys(t), before, "there was %q, and is %q", before)
}

// Deleting a response never removes a blob of another database, even if the blob has the name of a
// file of ours.
func TestDeleteKeepsBlobsOfAnotherDatabase(t *testing.T) {
	w := newFileWorld(t)
	f := w.uploaded(pattern(10))
	w.unmark()
	w.mark(string(formsvc.NewID(start())))
	svc := w.again()
	wantError(t, svc.Responses.Delete(w.ctx, w.response.Key(), nil), nil)
	equalAll(t, w.shelf.keys(t), []string{formsvc.BlobKey(f.ID)}, "blobs %q")
}

// Nodes of one database that start at once on an empty blob store all succeed; of several
// databases, one succeeds.
func TestConcurrentClaimsAgree(t *testing.T) {
	w := newFileWorld(t)
	w.unmark()
	stores := []formsvc.Store{w.store.Store, w.store.Store, memory.New(), memory.New()}
	errs := make([]error, len(stores))
	var all, ready sync.WaitGroup
	ready.Add(len(stores))
	w.shelf.disturb(func(method, key string) error {
		if method == "Put" && key == formsvc.MarkerKey { // no node has seen a marker yet
			ready.Done()
			ready.Wait()
		}
		return nil
	})
	for i, store := range stores {
		svc := must(formsvc.New(store, &formsvc.Options{Blobs: w.shelf}))
		all.Go(func() { errs[i] = svc.Files.Claim(w.ctx, nil) })
	}
	all.Wait()
	owner := w.owner()
	for i, store := range stores {
		id := must(store.Identity(w.ctx))
		if won := id == owner; won && errs[i] != nil || !won && !errors.Is(errs[i], formsvc.ErrOtherBlobs) {
			t.Errorf("the blobs belong to %s; %s was told %v", owner, id, errs[i])
		}
	}
}

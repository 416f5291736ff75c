package formsvc_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
)

// orphan creates a blob without a file, as an upload that was interrupted before its atomic write.
func (w *fileWorld) orphan(n int) formsvc.ID {
	w.tb.Helper()
	id := formsvc.FloorID(w.clock.Now())[:24] + formsvc.ID(fmt.Sprintf("%012x", 0xabcdef+n))
	must(w.shelf.Put(w.ctx, formsvc.BlobKey(id), strings.NewReader("orphan")))
	return id
}

func (w *fileWorld) sweep(opts *formsvc.SweepOptions) formsvc.SweepResult {
	return must(w.svc.Files.Sweep(w.ctx, opts))
}

func TestSweep(t *testing.T) {
	w := newFileWorld(t)
	old := w.uploaded(pattern(10))
	w.orphan(0)
	w.clock.add(time.Second)
	w.orphan(1)
	foreign := []string{"foreign", "ab/" + string(old.ID), string(old.ID), "zz/0", "x"}
	for _, key := range foreign {
		must(w.shelf.Put(w.ctx, key, strings.NewReader("not ours")))
	}
	w.clock.add(formsvc.SweepAge - time.Second)
	equal(t, w.sweep(nil), (formsvc.SweepResult{Blobs: 3}), "a day old and not older: %+v")
	w.clock.add(time.Millisecond)
	young := w.uploaded(pattern(20))
	before := w.shelf.keys(t)
	equal(t, w.sweep(&formsvc.SweepOptions{DryRun: true}), (formsvc.SweepResult{Blobs: 4, Orphans: 1, Bytes: 6}), "a dry run: %+v")
	equalAll(t, w.shelf.keys(t), before, "a dry run changed %q to %q", before)
	equal(t, w.sweep(nil), (formsvc.SweepResult{Blobs: 4, Orphans: 1, Bytes: 6, Removed: 1}), "%+v")
	w.clock.add(time.Hour)
	equal(t, w.sweep(nil), (formsvc.SweepResult{Blobs: 3, Orphans: 1, Bytes: 6, Removed: 1}), "an hour later: %+v")
	want := append(foreign, formsvc.BlobKey(old.ID), formsvc.BlobKey(young.ID))
	slices.Sort(want)
	equalAll(t, w.shelf.keys(t), want, "blobs %q")
	wantDamaged(t, w)
}

// If the list of blobs is incomplete, nothing is removed.
func TestSweepListFails(t *testing.T) {
	w := newFileWorld(t)
	for i := range 1200 { // more than one batch
		w.orphan(i)
	}
	w.clock.add(2 * formsvc.SweepAge)
	seen := 0
	w.shelf.disturb(func(method, _ string) error {
		if method == "List" {
			if seen++; seen == 1100 {
				return blobstore.ErrUnavailable
			}
		}
		return nil
	})
	wantError(t, failure(w.svc.Files.Sweep(w.ctx, &formsvc.SweepOptions{Force: true})), formsvc.ErrUnavailable)
	equal(t, len(w.shelf.keys(t)), 1200, "%d blobs remain")
	w.shelf.disturb(nil)
	if got := w.sweep(&formsvc.SweepOptions{Force: true}); got.Removed != 1200 {
		t.Errorf("%+v", got)
	}
}

// With the wrong database every blob looks like an orphan.
func TestSweepRefusesManyOrphans(t *testing.T) {
	w := newFileWorld(t)
	for i := range 101 {
		w.orphan(i)
	}
	w.clock.add(2 * formsvc.SweepAge)
	for range 100 {
		w.uploaded(pattern(1))
	}
	wantError(t, failure(w.svc.Files.Sweep(w.ctx, nil)), formsvc.ErrManyOrphans)
	equal(t, len(w.shelf.keys(t)), 201, "%d blobs remain")
	w.uploaded(pattern(1))
	if got := w.sweep(nil); got.Removed != 101 {
		t.Errorf("%+v", got)
	}
}

// An upload that was paused for a day between its blob and its atomic write must not create a file
// without bytes.
func TestSweepDuringUpload(t *testing.T) {
	w := newFileWorld(t)
	w.store.disturb(func(method string, _ int) error {
		if method == "CreateFile" {
			w.clock.add(2 * formsvc.SweepAge)
			if got := w.sweep(nil); got.Removed != 1 {
				t.Errorf("%+v", got)
			}
		}
		return nil
	})
	_, err := w.upload(formsvc.FileInput{Content: bytes.NewReader(pattern(10))})
	wantError(t, err, formsvc.ErrConflict)
	wantError(t, err, formsvc.ErrUnavailable) // trying again helps
	w.store.disturb(nil)
	w.nothing("swept")
}

// A cleaner counts calls of Clean.
type cleaner struct {
	*shelf

	before time.Time
}

func (c *cleaner) Clean(_ context.Context, before time.Time) (int, error) {
	c.before = before
	return 7, nil
}

func TestSweepCleansInterruptedUploads(t *testing.T) {
	w := newFileWorld(t)
	c := &cleaner{shelf: w.shelf}
	svc := must(formsvc.New(w.store, &formsvc.Options{Blobs: c, Now: w.clock.Now}))
	if got, err := svc.Files.Sweep(w.ctx, nil); got.Leftover != 7 || err != nil || !c.before.Equal(start().Add(-formsvc.SweepAge)) {
		t.Errorf("%+v, %v; before %v", got, err, c.before)
	}
	c.before = time.Time{}
	if got, err := svc.Files.Sweep(w.ctx, &formsvc.SweepOptions{DryRun: true}); got.Leftover != 0 || err != nil || !c.before.IsZero() {
		t.Errorf("a dry run: %+v, %v; before %v", got, err, c.before)
	}
}

// Run sweeps after an hour and then once a day, whatever fails.
func TestRunSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sweeps atomic.Int64
		w := newFileWorld(t, func(o *formsvc.Options) {
			o.Now = time.Now
			o.Logger = slog.New(slog.DiscardHandler)
		})
		w.orphan(0)
		w.shelf.disturb(func(method, key string) error {
			if method == "List" && key != formsvc.MarkerKey && sweeps.Add(1) == 1 {
				return errors.New("down")
			}
			return nil
		})
		defer running(w.svc)()
		time.Sleep(59 * time.Minute)
		equal(t, sweeps.Load(), 0, "%d sweeps in the first hour")
		time.Sleep(48 * time.Hour)
		if n, keys := sweeps.Load(), w.shelf.keys(t); n != 2 || len(keys) > 0 {
			t.Errorf("%d sweeps found something in two days; blobs %q", n, keys)
		}
	})
}

// An upload may commit after the sweep has listed its blob: then the file stays whole.
func TestSweepLosesToUpload(t *testing.T) {
	w := newFileWorld(t)
	late, lost := w.orphan(0), w.orphan(1)
	w.clock.add(2 * formsvc.SweepAge)
	w.store.disturb(func(method string, _ int) error {
		if method != "BarFiles" {
			return nil
		}
		f := formsvc.File{
			ID: late, AccountID: w.account, CampaignID: w.response.CampaignID, ResponseID: w.response.ID, Name: "late", ContentType: "text/plain",
			Size: 6, SHA256: sha256.Sum256([]byte("orphan")), Blocks: []byte{0, 0, 0, 0}, CreatedAt: w.clock.Now(),
		}
		return w.store.Store.CreateFile(w.ctx, f, func(*formsvc.Response) (formsvc.Change, error) { return formsvc.Change{}, nil })
	})
	if got := w.sweep(nil); got.Removed != 1 {
		t.Errorf("%+v", got)
	}
	if keys := w.shelf.keys(t); !slices.Equal(keys, []string{formsvc.BlobKey(late)}) {
		t.Errorf("the blobs are %q; %s was to go", keys, lost)
	}
}

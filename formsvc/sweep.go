package formsvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// Limits of a sweep.
const (
	sweepBatch = 500     // blobs in one query of the store
	sweepLimit = 100_000 // blobs without a file that one sweep removes; the next sweep continues
	sweepTrust = 100     // up to this number, orphans are removed without a check of their share
)

// SweepOptions are the optional settings of a sweep.
type SweepOptions struct {
	// DryRun counts what would be removed, and removes nothing. Defaults to removing it.
	DryRun bool
	// Force removes blobs without a file even if they outnumber those with one; it doesn't override
	// [ErrOtherBlobs]. Defaults to failing with [ErrManyOrphans].
	Force bool
}

// A SweepResult says what a sweep found.
type SweepResult struct {
	Blobs    int   // with the key of a file
	Orphans  int   // blobs without a file that are older than [SweepAge]
	Bytes    int64 // total size of the orphans
	Removed  int   // orphans removed
	Leftover int   // remains of interrupted uploads, removed
}

// Sweep removes blobs older than [SweepAge] that belong to no file, and the remains of interrupted
// uploads. It first bars the identifiers of such blobs in the store: if such an upload was only
// paused, it fails and can't create a file without content. Several sweeps may run at once.
//
// Sweep removes nothing if it can't list all blobs, if most blobs would be removed
// ([ErrManyOrphans]), or if the blob store belongs to other data ([ErrOtherBlobs]).
func (s Files) Sweep(ctx context.Context, opts *SweepOptions) (_ SweepResult, err error) {
	defer wrap(&err, "sweep")
	if s.s.Blobs == nil {
		return SweepResult{}, errors.ErrUnsupported
	}
	o := *cmp.Or(opts, &SweepOptions{})
	w := sweep{core: s.s, before: s.s.now().Add(-SweepAge)}
	err = w.run(ctx, &o)
	return w.result, err
}

type sweep struct {
	*core

	before  time.Time
	orphans []ID
	result  SweepResult
}

func (w *sweep) run(ctx context.Context, o *SweepOptions) error {
	// Each time: the blob store may have been replaced since the program started.
	if err := w.claim(ctx, !o.DryRun); err != nil {
		return err
	}
	if err := w.list(ctx); err != nil {
		return err
	}
	if w.result.Orphans > sweepTrust && w.result.Orphans > w.result.Blobs/2 && !o.Force {
		return fmt.Errorf("%w: %d of %d", ErrManyOrphans, w.result.Orphans, w.result.Blobs)
	}
	if o.DryRun {
		return nil
	}
	for ids := range slices.Chunk(w.orphans, sweepBatch) {
		if err := w.remove(ctx, ids); err != nil {
			return err
		}
	}
	cleaner, ok := w.Blobs.(blobstore.Cleaner)
	if !ok {
		return nil
	}
	n, err := cleaner.Clean(ctx, w.before)
	w.result.Leftover = n
	return err
}

// list finds the orphans.
func (w *sweep) list(ctx context.Context) error {
	sizes := make(map[ID]int64, sweepBatch) // of old blobs that may be orphans
	for info, err := range w.Blobs.List(ctx, "") {
		if err != nil {
			return blobError(err)
		}
		id, ok := blobID(info.Key)
		if !ok {
			continue
		}
		w.result.Blobs++
		if info.ModTime.Before(w.before) {
			sizes[id] = info.Size
		}
		if len(sizes) == sweepBatch {
			if err := w.judge(ctx, sizes); err != nil {
				return err
			}
			clear(sizes)
		}
	}
	return w.judge(ctx, sizes)
}

// judge finds the blobs that have no file.
func (w *sweep) judge(ctx context.Context, sizes map[ID]int64) error {
	if len(sizes) == 0 {
		return nil
	}
	unknown, err := w.store.UnknownFiles(ctx, slices.Sorted(maps.Keys(sizes)))
	for _, id := range unknown {
		w.result.Orphans++
		w.result.Bytes += sizes[id]
		if len(w.orphans) < sweepLimit {
			w.orphans = append(w.orphans, id)
		}
	}
	return err
}

// remove deletes the blobs of barred identifiers.
func (w *sweep) remove(ctx context.Context, ids []ID) error {
	barred, err := w.store.BarFiles(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range barred {
		if err := w.Blobs.Delete(ctx, BlobKey(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return blobError(err)
		}
		w.result.Removed++
	}
	return nil
}

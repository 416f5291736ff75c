package formsvc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
func (s Files) Sweep(ctx context.Context, opts *SweepOptions) (SweepResult, error) {
	if s.s.blobs == nil {
		return SweepResult{}, fmt.Errorf("formsvc: sweep: %w", errors.ErrUnsupported)
	}
	var o SweepOptions
	if opts != nil {
		o = *opts
	}
	w := sweep{core: s.s, before: s.s.now().Add(-SweepAge)}
	if err := w.run(ctx, &o); err != nil {
		return w.result, fmt.Errorf("formsvc: sweep: %w", err)
	}
	return w.result, nil
}

type sweep struct {
	*core

	before  time.Time
	batch   []blobstore.Info
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
	for len(w.orphans) > 0 {
		n := min(len(w.orphans), sweepBatch)
		if err := w.remove(ctx, w.orphans[:n]); err != nil {
			return err
		}
		w.orphans = w.orphans[n:]
	}
	cleaner, ok := w.blobs.(blobstore.Cleaner)
	if !ok {
		return nil
	}
	n, err := cleaner.Clean(ctx, w.before)
	w.result.Leftover = n
	return err
}

// list finds the orphans.
func (w *sweep) list(ctx context.Context) error {
	for info, err := range w.blobs.List(ctx, "") {
		if err != nil {
			return blobError(err)
		}
		if _, ok := blobID(info.Key); !ok {
			continue
		}
		w.result.Blobs++
		if !info.ModTime.Before(w.before) {
			continue
		}
		if w.batch = append(w.batch, info); len(w.batch) == sweepBatch {
			if err := w.judge(ctx); err != nil {
				return err
			}
		}
	}
	return w.judge(ctx)
}

// judge finds the blobs of the batch that have no file.
func (w *sweep) judge(ctx context.Context) error {
	ids := make([]ID, 0, len(w.batch))
	sizes := make(map[ID]int64, len(w.batch))
	for i := range w.batch {
		id, _ := blobID(w.batch[i].Key)
		ids = append(ids, id)
		sizes[id] = w.batch[i].Size
	}
	w.batch = w.batch[:0]
	if len(ids) == 0 {
		return nil
	}
	unknown, err := w.store.UnknownFiles(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range unknown {
		w.result.Orphans++
		w.result.Bytes += sizes[id]
		if len(w.orphans) < sweepLimit {
			w.orphans = append(w.orphans, id)
		}
	}
	return nil
}

// remove deletes the blobs of barred identifiers.
func (w *sweep) remove(ctx context.Context, ids []ID) error {
	barred, err := w.store.BarFiles(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range barred {
		if err := w.blobs.Delete(ctx, BlobKey(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return blobError(err)
		}
		w.result.Removed++
	}
	return nil
}

// verifyBatch is how many files are read at once; their Blocks stay in memory.
const verifyBatch = 100

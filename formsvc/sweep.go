package formsvc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// Bounds of a sweep.
const (
	sweepBatch = 500     // blobs that the store is asked about at once
	sweepLimit = 100_000 // blobs without a file that one sweep removes; the next one goes on
	sweepTrust = 100     // so many are removed without asking what share of all they are
)

// SweepOptions changes what a sweep does.
type SweepOptions struct {
	// DryRun counts what would be removed and leaves it. Defaults to removing it.
	DryRun bool
	// Force removes blobs without a file although they are more than those with
	// one. Defaults to [ErrManyOrphans].
	Force bool
}

// A SweepResult says what a sweep found.
type SweepResult struct {
	Blobs    int   // that are ours
	Orphans  int   // of them without a file and older than [SweepAge]
	Bytes    int64 // of these orphans together
	Removed  int   // orphans removed
	Leftover int   // what uploads that were cut off left behind, removed
}

// Sweep removes blobs older than [SweepAge] that belong to no file, and what
// uploads that were cut off left behind. It first bars the identifiers of such blobs
// in the store, so that an upload that was only asleep can't come back and point at
// what was removed: it fails. Several sweeps may run at once.
//
// Nothing is removed when the list of blobs can't be read to its end, nor when
// most blobs would be removed ([ErrManyOrphans]).
func (s Files) Sweep(ctx context.Context, opts *SweepOptions) (_ SweepResult, err error) {
	defer s.s.span(&ctx, "Files.Sweep").end(&err)
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

// judge sorts out which blobs of the batch have no file.
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

// remove deletes the blobs of identifiers that no file can have from now on.
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

// Verify reads the contents of all files of all accounts and calls damaged for
// those that are missing or not what was uploaded, with an error that is
// [ErrCorrupt]. It ends early with an error of damaged, and when the store or
// the blob store fails, since nothing is known then. It returns how many files it
// looked at.
func (s Files) Verify(ctx context.Context, damaged func(*File, error) error) (_ int, err error) {
	defer s.s.span(&ctx, "Files.Verify").end(&err)
	if s.s.blobs == nil {
		return 0, fmt.Errorf("formsvc: verify: %w", errors.ErrUnsupported)
	}
	checked := 0
	for after := ID(""); ; {
		files, err := s.s.store.AllFiles(ctx, after, verifyBatch)
		if err != nil {
			return checked, fmt.Errorf("formsvc: verify: %w", err)
		}
		for i := range files {
			err := s.verify(ctx, &files[i])
			if errors.Is(err, ErrCorrupt) {
				err = damaged(&files[i], err)
			}
			if err != nil {
				return checked, fmt.Errorf("formsvc: verify: %w", err)
			}
			checked++
		}
		if len(files) < verifyBatch {
			return checked, nil
		}
		after = files[len(files)-1].ID
	}
}

// verifyBatch is how many files are asked for at once; their Blocks are held.
const verifyBatch = 100

// verify returns an error that is ErrCorrupt when a file's content is damaged. A
// file that was deleted meanwhile is not.
func (s Files) verify(ctx context.Context, f *File) error {
	err := s.readAll(ctx, f)
	if errors.Is(err, ErrCorrupt) {
		if _, gone := s.s.store.File(ctx, FileKey{AccountID: f.AccountID, ID: f.ID}); errors.Is(gone, ErrNotFound) {
			return nil
		}
	}
	return err
}

func (s Files) readAll(ctx context.Context, f *File) error {
	c, err := s.open(ctx, f, 0, -1, true)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return errors.Join(err, c.Close())
}

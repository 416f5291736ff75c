// Package transfer moves all data of a service from one database to another, such as from SQLite to Postgres, while no
// server runs on either.
//
//	report, err := transfer.Copy(ctx, "sqlite:forms.db", "postgres://forms@db/forms", nil)
package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
)

// Reasons why nothing is copied; test for them with [errors.Is]. [formsvc.ErrMoved] is another.
var (
	// ErrNotEmpty means that the target has data.
	ErrNotEmpty = errors.New("transfer: the database is not empty")
	// ErrDiffers means that the databases, or the files, differ.
	ErrDiffers = errors.New("transfer: the copy differs")
)

// Options are the optional settings of [Copy] and [Verify].
type Options struct {
	// Keyring has the keys of the secrets in the source; they stay encrypted. Defaults to none.
	Keyring *keyring.Keyring
	// FromBlobs has the bytes of files, and ToBlobs receives them; set both or neither. Defaults to leaving them where they are.
	FromBlobs, ToBlobs blobstore.Store
	// SkipDamaged continues if the bytes of a file are missing or not what was uploaded. Defaults to failing.
	SkipDamaged bool
	// Progress is called now and then with "rows", or with "bytes" of files, and how many were copied. Defaults to nothing.
	Progress func(what string, done int64)
}

// A Report says what was copied or compared.
type Report struct {
	Tables  []Count      `json:"tables"`
	Files   int          `json:"files"`
	Bytes   int64        `json:"bytes"`
	Damaged []formsvc.ID `json:"damaged,omitempty"`
}

// A Count is the number of rows of a table.
type Count struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

type job struct {
	Options

	from, to *side
	report   Report
}

// run opens both databases, and calls do.
func run(ctx context.Context, from, to string, opts *Options, do func(*job, context.Context) error) (_ Report, err error) {
	j := new(job)
	defer func() {
		if err != nil {
			err = fmt.Errorf("transfer: %w", err)
		}
	}()
	if opts != nil {
		j.Options = *opts
	}
	if j.Progress == nil {
		j.Progress = func(string, int64) {}
	}
	if (j.FromBlobs == nil) != (j.ToBlobs == nil) {
		return Report{}, errors.New("one blob store is given, but not the other")
	}
	if j.from, err = openSide(ctx, from, j.Keyring); err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, j.from.close()) }()
	if j.to, err = openSide(ctx, to, j.Keyring); err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, j.to.close()) }()
	err = do(j, ctx)
	return j.report, err
}

// Copy moves all data from one database, "sqlite:PATH" or "postgres://…", to another, which must be empty. It locks both,
// copies the rows, compares them, copies the files, commits, and marks the source as moved: no server starts on it anymore,
// and one that still runs can't write. After a failure the source is as before and the target is empty; start over. If only
// the mark failed, the error says so: then remove the target first.
func Copy(ctx context.Context, from, to string, opts *Options) (Report, error) {
	return run(ctx, from, to, opts, (*job).copy)
}

func (j *job) copy(ctx context.Context) error {
	err := j.from.store.Ping(ctx)
	if err == nil {
		err = j.from.store.CheckKeys(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.from.place, err)
	}
	identity, err := j.from.store.Identity(ctx)
	if err != nil {
		return err
	}
	if there, err := j.to.store.Identity(ctx); err == nil && there == identity { // a lock would wait for the other
		return fmt.Errorf("%w: %s and %s have the same data; after a copy that was interrupted at its end, remove the target and start over", ErrNotEmpty, j.from.place, j.to.place)
	}
	if err := j.from.lock(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{j.to.prepare, j.from.describe, j.to.describe} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	sums, err := j.rows(ctx)
	if err == nil {
		err = j.compare(ctx, sums)
	}
	if err == nil && j.ToBlobs != nil {
		err = j.files(ctx)
	}
	if err == nil {
		err = j.from.fence(ctx, j.to.place)
	}
	if err == nil {
		err = j.to.exec(ctx, "UPDATE formsvc_identity SET identity = '"+string(identity)+"'", "COMMIT")
	}
	if err != nil {
		return err
	}
	if err := j.from.exec(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("%s has everything, but %s isn't marked as moved; remove the copy before you start over: %w", j.to.place, j.from.place, err)
	}
	return nil
}

// rows copies all rows, and returns the sums of what it read.
func (j *job) rows(ctx context.Context) ([]sum, error) {
	last, err := j.from.lastPosition(ctx)
	if err != nil {
		return nil, err
	}
	sums := make([]sum, len(j.from.tables))
	var done int64
	for i, t := range j.from.tables {
		if to := j.to.tables[i]; !slices.Equal(t.names, to.names) {
			return nil, fmt.Errorf("%w: %s has the columns %q and %q", ErrDiffers, t.name, t.names, to.names)
		}
		err := j.to.insert(ctx, j.to.tables[i], func(yield func([]any, error) bool) {
			for row, err := range j.from.rows(ctx, t, &sums[i]) {
				if done++; done%1000 == 0 {
					j.Progress("rows", done)
				}
				if !yield(row, err) {
					return
				}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	j.Progress("rows", done)
	return sums, j.to.rebuild(ctx, last)
}

// compare fails with ErrDiffers unless the target has rows with these sums.
func (j *job) compare(ctx context.Context, from []sum) error {
	to, err := j.to.sums(ctx)
	if err != nil {
		return err
	}
	for i, t := range j.to.tables {
		j.report.Tables = append(j.report.Tables, Count{t.name, to[i].rows})
		if from[i] != to[i] {
			err = errors.Join(err, fmt.Errorf("%w: %s has %d and %d rows", ErrDiffers, t.name, from[i].rows, to[i].rows))
		}
	}
	return err
}

// Verify compares all rows of two databases and, if both blob stores are set, all bytes of the files. It changes nothing. It
// fails with [ErrDiffers], also if one of the databases was used after the copy.
func Verify(ctx context.Context, from, to string, opts *Options) (Report, error) {
	return run(ctx, from, to, opts, func(j *job, ctx context.Context) error {
		if err := j.from.describe(ctx); err != nil {
			return err
		}
		if err := j.to.describe(ctx); err != nil {
			return err
		}
		sums, err := j.from.sums(ctx)
		if err == nil {
			err = j.compare(ctx, sums)
		}
		if err == nil && j.ToBlobs != nil {
			err = j.verifyFiles(ctx)
		}
		return err
	})
}

func (j *job) verifyFiles(ctx context.Context) error {
	svc, err := formsvc.New(j.to.store, &formsvc.Options{Blobs: j.ToBlobs})
	if err != nil {
		return err
	}
	row := j.to.conn.QueryRowContext(ctx, "SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM formsvc_files")
	if err := row.Scan(&j.report.Bytes); err != nil {
		return err
	}
	j.report.Files, err = svc.Files.Verify(ctx, func(f *formsvc.File, _ error) error {
		j.report.Damaged = append(j.report.Damaged, f.ID)
		return nil
	})
	if err == nil && len(j.report.Damaged) > 0 {
		err = fmt.Errorf("%w: %d files are missing or damaged", ErrDiffers, len(j.report.Damaged))
	}
	return err
}

// files makes the target's blob store belong to the data, and copies the files that it doesn't have yet.
func (j *job) files(ctx context.Context) error {
	from, err := formsvc.New(j.from.store, &formsvc.Options{Blobs: j.FromBlobs})
	if err == nil {
		err = from.Files.Claim(ctx, &formsvc.ClaimOptions{DryRun: true})
	}
	if err != nil {
		return err
	}
	to, err := formsvc.New(j.from.store, &formsvc.Options{Blobs: j.ToBlobs}) // the target gets the same identity
	if err == nil {
		err = to.Files.Claim(ctx, nil)
	}
	if err != nil {
		return err
	}
	for f, err := range formsvc.AllFiles(ctx, j.from.store) {
		if err != nil {
			return err
		}
		if err = from.Files.CopyTo(ctx, f, j.ToBlobs); errors.Is(err, formsvc.ErrCorrupt) {
			j.report.Damaged = append(j.report.Damaged, f.ID)
			if j.SkipDamaged {
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("file %s: %w", f.ID, err)
		}
		j.report.Files++
		j.report.Bytes += f.Size
		j.Progress("bytes", j.report.Bytes)
	}
	return nil
}

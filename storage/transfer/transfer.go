// Package transfer moves all data of a service from one database to another, such as from SQLite to Postgres, while no
// server runs on either.
//
//	report, err := transfer.Copy(ctx, "sqlite:forms.db", "postgres://forms@db/forms", nil)
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
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
	done     int64
}

func open(ctx context.Context, from, to string, opts *Options) (j *job, err error) {
	j = new(job)
	if opts != nil {
		j.Options = *opts
	}
	if j.Progress == nil {
		j.Progress = func(string, int64) {}
	}
	if (j.FromBlobs == nil) != (j.ToBlobs == nil) {
		return nil, errors.New("transfer: one blob store is given, but not the other")
	}
	if j.from, err = openSide(ctx, from, j.Keyring); err != nil {
		return nil, fmt.Errorf("transfer: %w", err)
	}
	if j.to, err = openSide(ctx, to, j.Keyring); err != nil {
		return nil, errors.Join(fmt.Errorf("transfer: %w", err), j.from.close())
	}
	return j, nil
}

func (j *job) close() error { return errors.Join(j.from.close(), j.to.close()) }

// Copy moves all data from one database, "sqlite:PATH" or "postgres://…", to another, which must be empty. It locks both,
// copies the rows in one transaction, compares them, copies the files, and marks the source as moved: no server starts on it
// anymore, and one that still runs can't write. After a failure or an interruption the source is as before; start over.
func Copy(ctx context.Context, from, to string, opts *Options) (_ Report, err error) {
	j, err := open(ctx, from, to, opts)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if err := j.copy(ctx); err != nil {
		return j.report, fmt.Errorf("transfer: %w", err)
	}
	return j.report, nil
}

func (j *job) copy(ctx context.Context) error {
	if err := j.from.checkSource(ctx); err != nil {
		return err
	}
	if err := j.differ(ctx); err != nil { // a lock would wait for the other forever
		return err
	}
	if err := j.from.lock(ctx); err != nil {
		return err
	}
	source, err := j.from.state(ctx)
	if err != nil {
		return err
	}
	if source.State == bunstore.Moved {
		return j.resume(ctx, &source)
	}
	if err := source.Refuse(); err != nil {
		return err
	}
	if err := j.to.prepare(ctx, source.Identity); err != nil {
		return err
	}
	sums, err := j.rows(ctx)
	if err != nil {
		return err
	}
	there, err := j.to.sums(ctx)
	if err == nil {
		err = j.compare(sums, there)
	}
	if err != nil {
		return err
	}
	since := time.Now().UnixMicro()
	if err := j.to.finish(ctx, bunstore.State{Identity: source.Identity, State: bunstore.Receiving, Peer: j.from.place, Since: since}); err != nil {
		return err
	}
	if err := j.files(ctx); err != nil {
		return err
	}
	if err := j.from.leave(ctx, bunstore.State{Identity: source.Identity, State: bunstore.Moved, Peer: j.to.place, Since: since}); err != nil {
		return err
	}
	return j.to.activate(ctx, since)
}

// differ checks that the two databases have different data. A new one has none.
func (j *job) differ(ctx context.Context) error {
	from, err := j.from.state(ctx)
	if err != nil {
		return err
	}
	to, err := j.to.state(ctx)
	if err == nil && to.Identity == from.Identity && to.State == bunstore.Active && from.State == bunstore.Active {
		return fmt.Errorf("%w: %s and %s have the same data", ErrNotEmpty, j.from.place, j.to.place)
	}
	return nil
}

// resume makes the target usable if this very copy was interrupted after its last step but one.
func (j *job) resume(ctx context.Context, source *bunstore.State) error {
	to, err := j.to.state(ctx)
	if err != nil || to.State != bunstore.Receiving || to.Since != source.Since {
		return source.Refuse()
	}
	return j.to.activate(ctx, source.Since)
}

// rows copies all rows, and returns the sums of what it read.
func (j *job) rows(ctx context.Context) ([]sum, error) {
	last, err := j.from.lastPosition(ctx)
	if err != nil {
		return nil, err
	}
	list := tables()
	sums := make([]sum, len(list))
	for i := range list {
		t := &list[i]
		var batch [][]any
		size := 0
		flush := func() error {
			j.done += int64(len(batch))
			j.Progress("rows", j.done)
			err := j.to.insert(ctx, t, batch)
			batch, size = nil, 0
			return err
		}
		err := j.from.each(ctx, t, func(row []any) error {
			sums[i].add(t, row)
			batch = append(batch, row)
			if size += sizeOf(row); len(batch) < 4096 && size < 4<<20 {
				return nil
			}
			return flush()
		})
		if err == nil && len(batch) > 0 {
			err = flush()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return sums, j.to.rebuild(ctx, last)
}

// compare fails with ErrDiffers if two lists of sums differ.
func (j *job) compare(from, to []sum) error {
	var bad []string
	j.report.Tables = nil
	for i, t := range tables() {
		j.report.Tables = append(j.report.Tables, Count{t.name, to[i].rows})
		if from[i] != to[i] {
			bad = append(bad, fmt.Sprintf("%s (%d and %d rows)", t.name, from[i].rows, to[i].rows))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%w: %s", ErrDiffers, strings.Join(bad, ", "))
	}
	return nil
}

// Verify compares all rows of two databases and, if both blob stores are set, all bytes of the files. It changes nothing. It
// fails with [ErrDiffers], also if one of the databases was used after the copy.
func Verify(ctx context.Context, from, to string, opts *Options) (_ Report, err error) {
	j, err := open(ctx, from, to, opts)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	here, err := j.from.sums(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("transfer: %w", err)
	}
	there, err := j.to.sums(ctx)
	if err == nil {
		err = j.compare(here, there)
	}
	if err == nil && j.ToBlobs != nil {
		err = j.eachFile(ctx, func(f *formsvc.File) error {
			in, _, err := j.ToBlobs.Open(ctx, formsvc.BlobKey(f.ID), 0, -1)
			if err == nil {
				_, err = io.Copy(io.Discard, checked(in, f))
				err = errors.Join(err, in.Close())
			}
			return err
		})
		if len(j.report.Damaged) > 0 {
			err = errors.Join(ErrDiffers, err)
		}
	}
	return j.report, err
}

// files makes the target's blob store belong to the data, and copies the files that it doesn't have yet.
func (j *job) files(ctx context.Context) error {
	if j.ToBlobs == nil {
		return nil
	}
	for _, b := range []blobstore.Store{j.FromBlobs, j.ToBlobs} {
		svc, err := formsvc.New(j.to.store, &formsvc.Options{Blobs: b})
		if err != nil {
			return err
		}
		if err := svc.Files.Claim(ctx, &formsvc.ClaimOptions{DryRun: b == j.FromBlobs}); err != nil {
			return err
		}
	}
	return j.eachFile(ctx, func(f *formsvc.File) error {
		key := formsvc.BlobKey(f.ID)
		if info, err := j.ToBlobs.Stat(ctx, key); err == nil && info.Size == f.Size {
			return nil
		}
		in, _, err := j.FromBlobs.Open(ctx, key, 0, -1)
		if err != nil {
			return err
		}
		_, err = j.ToBlobs.Put(ctx, key, checked(in, f))
		return errors.Join(err, in.Close())
	})
}

// eachFile calls do for every file, and reports those that are missing or damaged.
func (j *job) eachFile(ctx context.Context, do func(*formsvc.File) error) error {
	q := formsvc.FileQuery{AllAccounts: true, Page: formsvc.PageQuery{Limit: 500, Ascending: true}}
	for {
		page, err := j.to.store.Files(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			f := &page.Items[i]
			err := do(f)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, formsvc.ErrCorrupt) {
				j.report.Damaged = append(j.report.Damaged, f.ID)
				if err = fmt.Errorf("file %s: %w: %w", f.ID, formsvc.ErrCorrupt, err); j.SkipDamaged {
					err = nil
				}
			}
			if err != nil {
				return err
			}
			j.report.Files++
			j.report.Bytes += f.Size
			j.Progress("bytes", j.report.Bytes)
		}
		if !page.More {
			return nil
		}
		q.Page.After = page.Items[len(page.Items)-1].ID
	}
}

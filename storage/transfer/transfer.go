// Package transfer moves all data of a service from one database to another, such as from SQLite to Postgres, while no
// server runs on either.
//
//	report, err := transfer.Copy(ctx, "sqlite:forms.db", "postgres://forms@db/forms", nil)
package transfer

import (
	"context"
	"errors"
	"fmt"
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
// copies the rows, compares them, copies the files, commits, and marks the source as moved: no server starts on it anymore,
// and one that still runs can't write. After a failure or an interruption the source is as before and the target is empty;
// start over. If it was interrupted between its last two steps, the target has everything, and the same call marks the source.
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
	there, err := j.to.state(ctx) // fails if there is no schema yet
	hasSchema := err == nil
	source, err := j.from.state(ctx)
	if err != nil {
		return err
	}
	if err := source.Refuse(); err != nil {
		return err
	}
	again := hasSchema && there.Identity == source.Identity
	if again && (there.Peer == "" || there.Since == source.Since) { // a lock would wait for the other forever
		return fmt.Errorf("%w: %s and %s have the same data", ErrNotEmpty, j.from.place, j.to.place)
	}
	if err := j.from.lock(ctx); err != nil {
		return err
	}
	since := time.Now().UnixMicro()
	if again { // a copy was interrupted before it marked the source
		err = j.finished(ctx)
	} else {
		err = j.fill(ctx, bunstore.State{Identity: source.Identity, State: bunstore.Active, Peer: j.from.place, Since: since})
	}
	if err != nil {
		return err
	}
	if err := j.from.leave(ctx, bunstore.State{Identity: source.Identity, State: bunstore.Moved, Peer: j.to.place, Since: since}); err != nil {
		return err
	}
	return j.to.exec(ctx, "UPDATE formsvc_identity SET peer = '' WHERE id = 1")
}

// fill copies everything to the target, which then has the state. Nothing is there before.
func (j *job) fill(ctx context.Context, state bunstore.State) error {
	if err := j.to.prepare(ctx); err != nil {
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
	if err == nil {
		err = j.files(ctx)
	}
	if err == nil {
		err = j.to.setState(ctx, state)
	}
	if err != nil {
		return err
	}
	return j.to.exec(ctx, "COMMIT")
}

// finished checks that the target has all of the source.
func (j *job) finished(ctx context.Context) error {
	err := j.verify(ctx)
	if errors.Is(err, ErrDiffers) {
		err = fmt.Errorf("%w: %s has an earlier copy of %s; remove it, and copy again", ErrNotEmpty, j.to.place, j.from.place)
	}
	return err
}

// verify compares all rows.
func (j *job) verify(ctx context.Context) error {
	here, err := j.from.sums(ctx)
	if err != nil {
		return err
	}
	there, err := j.to.sums(ctx)
	if err != nil {
		return err
	}
	return j.compare(here, there)
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
	err = j.verify(ctx)
	if err == nil && j.ToBlobs != nil {
		err = j.verifyFiles(ctx)
	}
	if err != nil {
		err = fmt.Errorf("transfer: %w", err)
	}
	return j.report, err
}

func (j *job) verifyFiles(ctx context.Context) error {
	svc, err := formsvc.New(j.to.store, &formsvc.Options{Blobs: j.ToBlobs})
	if err != nil {
		return err
	}
	if _, j.report.Bytes, err = j.to.store.CountFiles(ctx); err != nil {
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
	if j.ToBlobs == nil {
		return nil
	}
	from, err := formsvc.New(j.from.store, &formsvc.Options{Blobs: j.FromBlobs, HashDownloads: true})
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
		err := j.file(ctx, from, f)
		if errors.Is(err, formsvc.ErrCorrupt) {
			j.report.Damaged = append(j.report.Damaged, f.ID)
			if err = fmt.Errorf("file %s: %w", f.ID, err); j.SkipDamaged {
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
	return nil
}

// file copies a file, unless it is there. A reader of the service checks the bytes.
func (j *job) file(ctx context.Context, from *formsvc.Service, listed *formsvc.File) error {
	key := formsvc.BlobKey(listed.ID)
	if info, err := j.ToBlobs.Stat(ctx, key); err == nil && info.Size == listed.Size {
		return nil
	}
	f, err := from.Files.Get(ctx, formsvc.FileKey{AccountID: listed.AccountID, ID: listed.ID})
	if err != nil {
		return err
	}
	in, err := from.Files.Open(ctx, &f, 0, -1)
	if err != nil {
		return err
	}
	_, err = j.ToBlobs.Put(ctx, key, in)
	return errors.Join(err, in.Close())
}

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

// Reasons why nothing is copied; test for them with [errors.Is]. [formsvc.ErrMoved] is
// another: the data was moved from the source before. Their texts say what to do.
var (
	// ErrSame means that both databases have the same data: they are one database, or one
	// is a copy of the other.
	ErrSame = errors.New("transfer: both are the same data")
	// ErrNotEmpty means that the target has data.
	ErrNotEmpty = errors.New("transfer: the database is not empty")
	// ErrSchema means that a database doesn't have the schema of this release.
	ErrSchema = errors.New("transfer: the schema is not that of this release")
	// ErrDiffers means that the databases, or the files, differ.
	ErrDiffers = errors.New("transfer: the copy differs")
	// ErrUnderWay means that another process runs the same copy.
	ErrUnderWay = errors.New("transfer: another copy is under way")
)

// A Store is a *sqlite.Store or a *postgres.Store. Open it with SkipMigrations, which
// changes nothing and also opens a database that must not be used. Its keyring must have
// the keys of the secrets.
type Store interface {
	formsvc.Store
	Migrate(ctx context.Context) error
	MissingKeys(ctx context.Context) ([]string, error)
	Portable() bunstore.Portable
}

// Progress is the progress of a copy.
type Progress struct {
	What      string // "rows", "files" (in bytes) or "checking" (rows)
	Done, All int64
}

// Options configures a copy. The zero value is ready for use.
type Options struct {
	// FromBlobs has the bytes of files, and ToBlobs receives them; set both or neither.
	// Blobs of no file aren't copied. Defaults to nil: the bytes stay where they are.
	FromBlobs, ToBlobs blobstore.Store
	// SkipDamaged continues if the bytes of a file are missing or not what was uploaded.
	// Report names such files. Defaults to false: the copy fails.
	SkipDamaged bool
	// Progress is called now and then, from any goroutine. Defaults to nothing.
	Progress func(Progress)
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

// A job is a copy or a comparison.
type job struct {
	Options

	from, to bunstore.Portable
	keys     Store // the store whose keyring is checked: from
	target   Store
	token    int64 // identifies the copy on both sides
	report   Report
}

func newJob(from, to Store, opts *Options) *job {
	j := &job{from: from.Portable(), to: to.Portable(), keys: from, target: to}
	if opts != nil {
		j.Options = *opts
	}
	if j.Progress == nil {
		j.Progress = func(Progress) {}
	}
	return j
}

// Copy moves all data from one database to another, which must be empty. Afterwards the
// source can't be used anymore. After an interruption, call it again with the same two
// databases.
func Copy(ctx context.Context, from, to Store, opts *Options) (Report, error) {
	j := newJob(from, to, opts)
	moved, err := j.begin(ctx)
	if err = j.classify(err); err != nil && j.token != 0 { // it is unknown whether the fence is there
		err = j.giveUp(ctx, err)
	}
	if err != nil {
		return j.report, err
	}
	if !moved {
		if err := j.classify(j.copy(ctx)); err != nil {
			return j.report, j.giveUp(ctx, err)
		}
	}
	if err := j.classify(j.activate(ctx)); err != nil {
		return j.report, fmt.Errorf("%w\n\nAll is copied, but %s is not marked as usable: run the same copy again", err, j.to.Place())
	}
	return j.report, nil
}

// copy does everything up to marking the source as moved.
func (j *job) copy(ctx context.Context) error {
	if err := j.start(ctx); err != nil {
		return err
	}
	if err := j.claim(ctx); err != nil {
		return err
	}
	if err := j.rows(ctx); err != nil {
		return err
	}
	if err := j.finish(ctx); err != nil {
		return err
	}
	if err := j.files(ctx); err != nil {
		return err
	}
	if err := j.compare(ctx); err != nil {
		return err
	}
	return j.leave(ctx)
}

// Cancel removes the fence of an interrupted copy from its source, which can then be used as
// before. It fails with formsvc.ErrMoved if the data has moved already, and with another error
// if no copy is under way.
func Cancel(ctx context.Context, from Store) error {
	j := &job{from: from.Portable(), to: from.Portable()}
	if err := j.checkSchema(ctx, j.from, "migrate it first"); err != nil {
		return j.classify(err)
	}
	state, err := j.state(ctx, j.from)
	switch {
	case err != nil:
		return j.classify(err)
	case state.State == bunstore.Active:
		return fmt.Errorf("transfer: no copy from %s is under way", j.from.Place())
	case state.State != bunstore.Moving:
		return state.Refuse()
	}
	j.token = state.Since
	return j.classify(j.release(ctx))
}

func (j *job) classify(err error) error { return j.to.Classify(j.from.Classify(err)) }

// errLeft means that the source is marked as moved.
var errLeft = errors.New("transfer: all is copied")

// giveUp makes the source usable again, unless another process still copies.
func (j *job) giveUp(ctx context.Context, err error) error {
	if errors.Is(err, ErrUnderWay) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	failed := j.classify(j.release(ctx))
	if errors.Is(failed, errLeft) {
		return fmt.Errorf("%w\n\nAll is copied, but %s is not marked as usable: run the same copy again", err, j.to.Place())
	}
	if failed != nil {
		return fmt.Errorf("%w\n\n%s could not be made usable again (%w): run the same copy again, or \"formsvc copy --cancel --from …\"",
			err, j.from.Place(), failed)
	}
	return fmt.Errorf("%w\n\nNothing is moved: %s is in use as before", err, j.from.Place())
}

// missing fails if the keyring lacks a key that secrets need.
func (j *job) missing(ctx context.Context) error {
	ids, err := j.keys.MissingKeys(ctx)
	if err == nil && len(ids) > 0 {
		err = fmt.Errorf("%w: %s: the database has secrets sealed under it", keyring.ErrUnknownKey, strings.Join(ids, ", "))
	}
	return err
}

package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/disk"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// A Target is where a backup is restored.
type Target struct {
	// Database is the path of the database file, which must not exist; the directory must.
	Database string
	// Files receives the files that it doesn't have. It must be empty or belong to the database. If it is nil, the files stay
	// in the backup.
	Files blobstore.Store
	// KeyFile is the path of the file for the keys, if the backup has keys. A file with the same keys may exist. Defaults to
	// secret.keys beside the database.
	KeyFile string
	// Keyring has the keys of the secrets if the backup has none. Defaults to none.
	Keyring *keyring.Keyring
	// Progress is called with the bytes of files that were restored. Defaults to nothing.
	Progress func(bytes int64)
}

// Unfinished returns the path of the database until its restore is finished. If it exists and the database doesn't, a
// program should not create one.
func Unfinished(database string) string { return database + ".restoring" }

// Restore restores a backup: the files, the keys and, last, the database, which it migrates. So nothing can use an
// incomplete restore. After an interruption, call it again.
//
// If files are damaged or missing in the backup, Restore restores the rest and returns [ErrDamaged] with a Summary that names
// them. It changes nothing if the database or the keys of the backup are damaged (ErrDamaged), with [ErrNoBackup],
// [ErrNotEmpty], formsvc.ErrOtherBlobs, and keyring.ErrUnknownKey.
func Restore(ctx context.Context, dir string, to Target) (Summary, error) {
	if to.KeyFile == "" {
		to.KeyFile = filepath.Join(filepath.Dir(to.Database), keysFile)
	}
	r := &restoring{Target: to, dir: dir, temp: Unfinished(to.Database), tempKeys: Unfinished(to.KeyFile)}
	if err := r.restore(ctx); err != nil {
		return Summary{}, fmt.Errorf("backup: restore: %w", err)
	}
	return r.summary, r.summary.failure()
}

type restoring struct {
	Target

	dir            string
	sums           string // the text of SHA256SUMS
	summary        Summary
	temp, tempKeys string // paths of the database and the keys until they have their names
}

func (r *restoring) path(name string) string { return filepath.Join(r.dir, name) }

func (r *restoring) restore(ctx context.Context) error {
	sums, err := os.ReadFile(r.path(sumsFile)) // is written last
	if err != nil {
		return fmt.Errorf("%s: %w: %w", r.dir, ErrNoBackup, err)
	}
	r.sums = string(sums)
	r.summary.HasKeys = strings.Contains(r.sums, "  "+keysFile+"\n")
	_, err = os.Stat(r.path(filesDir))
	r.summary.HasFiles = err == nil || strings.Contains(r.sums, "  "+filesDir+"/")
	if err := errors.Join(r.checkTarget(), r.removeTemp()); err != nil {
		return err
	}
	begun := false // whether files may have been written
	rows, err := r.open(ctx)
	if err == nil {
		begun, err = r.fill(ctx, rows)
		err = errors.Join(err, rows.Close()) // moves the log into the file
	}
	if err != nil {
		if !begun {
			err = errors.Join(err, r.removeTemp())
		}
		return err
	}
	if r.summary.HasKeys {
		if err := rename(r.tempKeys, r.KeyFile); err != nil && !errors.Is(err, ErrNotEmpty) { // checkTarget has compared them
			return err
		}
	}
	return errors.Join(rename(r.temp, r.Database), r.removeTemp())
}

// checkTarget checks that nothing would be overwritten.
func (r *restoring) checkTarget() error {
	for _, path := range []string{r.Database, r.Database + "-wal", r.Database + "-shm"} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fmt.Errorf("%s already exists: %w", path, ErrNotEmpty))
		}
	}
	there, err := os.ReadFile(r.KeyFile)
	if err != nil || !r.summary.HasKeys {
		return nil
	}
	own, err := os.ReadFile(r.path(keysFile))
	if err != nil || string(there) != string(own) {
		return errors.Join(err, fmt.Errorf("%s already exists and has other keys: %w", r.KeyFile, ErrNotEmpty))
	}
	return nil
}

// removeTemp removes what an unfinished restore has beside the files.
func (r *restoring) removeTemp() (failed error) {
	for _, path := range []string{r.temp, r.temp + "-wal", r.temp + "-shm", r.tempKeys} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// open copies the keys and the database, and opens it.
func (r *restoring) open(ctx context.Context) (_ *sqlite.Store, err error) {
	ring := r.Keyring
	if r.summary.HasKeys {
		if _, err := r.copyIn(keysFile, r.tempKeys); err != nil {
			return nil, err
		}
		if ring, err = keyring.OpenFile(r.tempKeys); err != nil {
			return nil, err
		}
	}
	if r.summary.Database, err = r.copyIn(databaseFile, r.temp); err != nil {
		return nil, err
	}
	rows, err := sqlite.Open(ctx, r.temp, &sqlite.Options{Keyring: ring})
	if errors.Is(err, keyring.ErrUnknownKey) && !r.summary.HasKeys {
		err = fmt.Errorf("the backup was made without its keys: %w", err)
	}
	return rows, err
}

// copyIn copies a file of the backup, checks its sum, and returns its length.
func (r *restoring) copyIn(name, to string) (int64, error) {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller names it
	if err != nil {
		return 0, err
	}
	line, size, err := copySum(r.path(name), out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !strings.Contains(r.sums, line) {
		err = fmt.Errorf("%s of the backup is missing or %w", name, ErrDamaged)
	}
	return size, errors.Join(err, out.Sync(), out.Close())
}

// fill prepares the database and restores the files that it lists. begun says whether files may have been written.
func (r *restoring) fill(ctx context.Context, rows *sqlite.Store) (begun bool, err error) {
	if err := rows.CheckIntegrity(ctx); err != nil {
		return false, fmt.Errorf("%s of the backup is %w: %w", databaseFile, ErrDamaged, err)
	}
	if err := rows.Restored(ctx); err != nil || r.Files == nil || !r.summary.HasFiles {
		return false, err
	}
	svc, err := formsvc.New(rows, &formsvc.Options{Blobs: r.Files})
	if err == nil {
		err = svc.Files.Claim(ctx, nil)
	}
	if err != nil {
		return false, err
	}
	from, err := fileblob.Open(r.path(filesDir))
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	stored, err := formsvc.New(rows, &formsvc.Options{Blobs: from})
	if err != nil {
		return true, err
	}
	for f, err := range formsvc.AllFiles(ctx, rows) {
		if err == nil {
			err = stored.Files.CopyTo(ctx, f, r.Files)
		}
		damaged := errors.Is(err, formsvc.ErrCorrupt)
		if err != nil && !damaged {
			return true, err
		}
		r.summary.add(f, damaged, r.Progress)
	}
	return true, nil
}

// rename gives a file a new name, which must be free. Unlike a rename, a link never replaces a file that another process has
// created meanwhile, such as a server that was started too early.
func rename(from, to string) error {
	if err := os.Link(from, to); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s was created meanwhile: %w", to, ErrNotEmpty)
		}
		return err
	}
	return errors.Join(os.Remove(from), disk.SyncDir(filepath.Dir(to)))
}

package backup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/disk"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// A Target is where a backup is restored.
type Target struct {
	// Database is the path of the database file, which must not exist; the directory must.
	Database string
	// Files receives the files. It must be empty, and then belongs to the database. If it is nil, the files stay in the backup.
	Files blobstore.Store
	// KeyFile is the path of the file for the keys, if the backup has keys. A file with the same keys may exist.
	KeyFile string
}

// Unfinished returns the path of the database until its restore is finished. If it exists and the database doesn't, a
// program should not create one.
func Unfinished(database string) string { return database + ".restoring" }

// Read returns the manifest of a backup. It fails with [ErrNoBackup].
func Read(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, manifestFile)) //nolint:gosec // the caller names the directory
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || m.Format != 1 {
		return m, fmt.Errorf("backup: %s: %w (format %d): %w", dir, ErrNoBackup, m.Format, errors.Join(err))
	}
	return m, nil
}

// Restore restores a backup: the files, the keys and, last, the database, which it migrates. So nothing can use an
// incomplete restore. Of opts it uses Keyring, for a backup without keys, and Progress. After an interruption, call it again.
//
// If files are damaged or missing in the backup, Restore restores the rest and returns [ErrDamaged] with a manifest that
// names them. It changes nothing if the database or the keys of the backup are damaged (ErrDamaged), with [ErrNoBackup],
// [ErrNotEmpty], formsvc.ErrOtherBlobs, and keyring.ErrUnknownKey.
func Restore(ctx context.Context, dir string, to Target, opts *Options) (Manifest, error) {
	m, err := Read(dir)
	if err != nil {
		return m, err
	}
	r := &restoring{Options: opts.withDefaults(), to: to, dir: dir, m: &m, temp: Unfinished(to.Database)}
	if err := r.restore(ctx); err != nil {
		return m, fmt.Errorf("backup: restore: %w", err)
	}
	if len(r.damaged) > 0 {
		m.Damaged = append(m.Damaged, r.damaged...)
		return m, fmt.Errorf("backup: restore: %w: %d files of the backup are missing or damaged; the rest was restored", ErrDamaged, len(r.damaged))
	}
	return m, nil
}

type restoring struct {
	Options

	to      Target
	dir     string
	m       *Manifest
	temp    string
	damaged []formsvc.ID
	done    int64
}

func (r *restoring) restore(ctx context.Context) (err error) {
	sums, err := os.ReadFile(filepath.Join(r.dir, sumsFile))
	if err != nil || fmt.Sprintf("%x", sha256.Sum256(sums)) != r.m.Sums {
		return fmt.Errorf("%s of the backup is %w: %w", sumsFile, ErrDamaged, errors.Join(err))
	}
	resumed, err := r.checkTarget(ctx)
	if err != nil {
		return err
	}
	if err := r.copyIn(string(sums), databaseFile, r.temp); err != nil {
		return err
	}
	ring := r.Keyring
	keys := r.tempKeys()
	if r.m.HasKeys {
		if err = r.copyIn(string(sums), keysFile, keys); err == nil {
			ring, err = keyring.OpenFile(keys)
		}
	}
	begun := resumed
	if err == nil {
		begun, err = r.fill(ctx, ring, begun)
	}
	if err != nil {
		if !begun {
			err = errors.Join(err, r.removeTemp())
		}
		return err
	}
	if r.m.HasKeys && r.to.KeyFile != "" {
		if err := rename(keys, r.to.KeyFile); err != nil && !errors.Is(err, ErrNotEmpty) { // checkTarget has compared them
			return err
		}
	}
	return errors.Join(rename(r.temp, r.to.Database), r.removeTemp())
}

// tempKeys returns the path of the keys until they have their name, on the same file system.
func (r *restoring) tempKeys() string {
	if r.to.KeyFile != "" {
		return Unfinished(r.to.KeyFile)
	}
	return r.temp + ".keys"
}

// checkTarget checks that nothing would be overwritten. resumed says that an interrupted restore is there.
func (r *restoring) checkTarget(ctx context.Context) (resumed bool, err error) {
	for _, path := range []string{r.to.Database, r.to.Database + "-wal", r.to.Database + "-shm"} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return false, errors.Join(err, fmt.Errorf("%s already exists: %w", path, ErrNotEmpty))
		}
	}
	if r.m.HasKeys && r.to.KeyFile != "" {
		there, err := os.ReadFile(r.to.KeyFile)
		own, ownErr := os.ReadFile(filepath.Join(r.dir, keysFile))
		if err == nil && (ownErr != nil || string(there) != string(own)) {
			return false, errors.Join(ownErr, fmt.Errorf("%s already exists and has other keys: %w", r.to.KeyFile, ErrNotEmpty))
		}
	}
	if _, err := os.Lstat(r.temp); err == nil {
		return true, nil
	}
	if r.to.Files == nil {
		return false, nil
	}
	for info, err := range r.to.Files.List(ctx, "") {
		if err != nil {
			return false, err
		}
		if info.Key != formsvc.MarkerKey { // fill checks whether it has the same data
			return false, fmt.Errorf("the blob store already has files, such as %s: %w", info.Key, ErrNotEmpty)
		}
	}
	return false, nil
}

// copyIn copies a file of the backup, and checks its sum. It removes a bad copy.
func (r *restoring) copyIn(sums, name, to string) error {
	from := filepath.Join(r.dir, name)
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	in, err := os.Open(from) //nolint:gosec // below the directory that the caller names
	if err != nil {
		return fmt.Errorf("%s of the backup is %w: %w", name, ErrDamaged, err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller names it
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil && !strings.Contains(sums, fmt.Sprintf("%x  %s\n", h.Sum(nil), name)) {
		err = fmt.Errorf("%s of the backup is %w: its SHA-256 differs", name, ErrDamaged)
	}
	if err != nil {
		return errors.Join(err, r.removeTemp())
	}
	return nil
}

// removeTemp removes what an unfinished restore has beside the files.
func (r *restoring) removeTemp() (failed error) {
	for _, path := range []string{r.temp, r.temp + "-wal", r.temp + "-shm", r.tempKeys()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// fill prepares the database and restores the files that it lists. begun says whether files may have been written.
func (r *restoring) fill(ctx context.Context, ring *keyring.Keyring, begun bool) (_ bool, err error) {
	rows, err := sqlite.Open(ctx, r.temp, &sqlite.Options{Keyring: ring})
	if err != nil {
		if errors.Is(err, keyring.ErrUnknownKey) && !r.m.HasKeys {
			err = fmt.Errorf("the backup was made without its keys: %w", err)
		}
		return begun, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }() // moves the log into the file
	if err := rows.CheckIntegrity(ctx); err != nil {
		return begun, fmt.Errorf("%s of the backup is %w: %w", databaseFile, ErrDamaged, err)
	}
	if err := rows.Restored(ctx); err != nil || r.to.Files == nil || !r.m.HasFiles {
		return begun, err
	}
	svc, err := formsvc.New(rows, &formsvc.Options{Blobs: r.to.Files})
	if err != nil {
		return begun, err
	}
	if err := svc.Files.Claim(ctx, nil); err != nil {
		return begun, err
	}
	for f, err := range formsvc.AllFiles(ctx, rows) {
		if err == nil && !slices.Contains(r.m.Damaged, f.ID) {
			err = r.bringBack(ctx, f)
			r.done += f.Size
			r.Progress(r.done)
		}
		if errors.Is(err, ErrDamaged) {
			r.damaged, err = append(r.damaged, f.ID), nil
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// bringBack restores a file, unless an interrupted restore has done so: a blob store keeps only whole blobs.
func (r *restoring) bringBack(ctx context.Context, f *formsvc.File) error {
	in, err := os.Open(filepath.Join(r.dir, filesDir, filepath.FromSlash(formsvc.BlobKey(f.ID))))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("file %s is %w: it is missing", f.ID, ErrDamaged)
	}
	if err != nil {
		return err
	}
	err = errors.Join(put(ctx, f, in, r.to.Files), in.Close())
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
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

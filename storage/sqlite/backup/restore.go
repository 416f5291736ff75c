package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// A Target is where a backup is restored.
type Target struct {
	// Database is the path of the database file, which must not exist; the directory
	// must.
	Database string
	// Files receives the files. It must be empty, and then belongs to the database
	// (formsvc.Files.Claim). If it is nil, the files stay in the backup.
	Files blobstore.Store
	// KeyFile is the path of the file for the keys, if the backup has keys. A file with
	// the same keys may exist.
	KeyFile string
}

// Unfinished returns the path of the database until its restore is finished. If it exists
// and the database doesn't, a program should not create one.
func Unfinished(database string) string { return database + ".restoring" }

// Restore restores a backup: the files, the keys and, last, the database, which it
// migrates. So nothing can use an incomplete restore. Of opts it uses Keyring, for a
// backup without keys, and Progress.
//
// After an interruption or a failure, call it again to resume. A file that is damaged or
// missing in the backup doesn't stop the rest from being restored. Restore then returns
// an error that is [ErrDamaged], and a manifest that names such files. Restore changes
// nothing in these cases:
//
//   - ErrDamaged: the database or the keys of the backup are damaged.
//   - [ErrNoBackup], [ErrNewer]: the directory isn't a backup, or a newer release made
//     it.
//   - [ErrNotEmpty]: the target isn't empty.
//   - formsvc.ErrOtherBlobs: the blob store belongs to another database.
//   - keyring.ErrUnknownKey: the keys don't open the backup's secrets.
func Restore(ctx context.Context, dir string, to Target, opts *Options) (Manifest, error) {
	m, err := Read(dir)
	if err != nil {
		return m, err
	}
	r := &restoring{Options: opts.withDefaults(), to: to, dir: dir, manifest: &m, temp: Unfinished(to.Database)}
	if err := r.restore(ctx); err != nil {
		return m, fmt.Errorf("backup: restore: %w", err)
	}
	if len(r.damaged) > 0 {
		m.Damaged = append(m.Damaged, r.damaged...)
		return m, fmt.Errorf("backup: restore: %w: %d files of the backup are missing or damaged; the rest was restored",
			ErrDamaged, len(r.damaged))
	}
	return m, nil
}

type restoring struct {
	Options

	to       Target
	dir      string
	manifest *Manifest
	temp     string
	sums     map[string]string // of everything except the files of responses
	keys     []byte            // content of the backup's key file
	damaged  []formsvc.ID
	begun    bool // files were written
	done     int64
}

func (r *restoring) restore(ctx context.Context) (err error) {
	if err := r.readSums(); err != nil {
		return err
	}
	resumed, err := r.checkTarget(ctx)
	if err != nil {
		return err
	}
	r.begun = resumed
	defer func() {
		if err != nil && !r.begun {
			err = errors.Join(err, r.removeTemp())
		}
	}()
	if err := r.copyDatabase(); err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	if err := r.writeKeys(); err != nil {
		return err
	}
	return r.publish()
}

// readSums reads the checksums of the database and the keys.
func (r *restoring) readSums() error {
	path := filepath.Join(r.dir, sumsFile)
	if sum, _, err := sumOf(path); err != nil || sum != r.manifest.Sums {
		return fmt.Errorf("%s of the backup is %w: %w", sumsFile, ErrDamaged, errors.Join(err, errOther))
	}
	f, err := os.Open(path) //nolint:gosec // below the directory that the caller names
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r.sums = make(map[string]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if sum, name, ok := strings.Cut(lines.Text(), "  "); ok && !strings.Contains(name, "/") {
			r.sums[name] = sum
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !r.manifest.HasKeys {
		return nil
	}
	r.keys, err = os.ReadFile(filepath.Join(r.dir, keysFile))
	if sum := sha256.Sum256(r.keys); err != nil || hex.EncodeToString(sum[:]) != r.sums[keysFile] {
		return fmt.Errorf("%s of the backup is %w: %w", keysFile, ErrDamaged, errors.Join(err, errOther))
	}
	return nil
}

// checkTarget checks that nothing would be overwritten. resumed says that an interrupted
// restore is there.
func (r *restoring) checkTarget(ctx context.Context) (resumed bool, err error) {
	for _, path := range []string{r.to.Database, r.to.Database + "-wal", r.to.Database + "-shm"} {
		if there, err := exists(path); err != nil || there {
			return false, errors.Join(err, fmt.Errorf("%s already exists: %w", path, ErrNotEmpty))
		}
	}
	if r.keys != nil && r.to.KeyFile != "" {
		text, err := os.ReadFile(r.to.KeyFile)
		switch {
		case err == nil && !bytes.Equal(text, r.keys):
			return false, fmt.Errorf("%s already exists and has other keys: %w", r.to.KeyFile, ErrNotEmpty)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, err
		}
	}
	if resumed, err = exists(r.temp); err != nil || resumed || r.to.Files == nil {
		return resumed, err
	}
	for info, err := range r.to.Files.List(ctx, "") {
		if err != nil {
			return false, err
		}
		if info.Key == formsvc.MarkerKey {
			continue // fill checks whether it has the same data
		}
		return false, fmt.Errorf("the blob store already has files, such as %s: %w", info.Key, ErrNotEmpty)
	}
	return false, nil
}

// removeTemp removes the unfinished database.
func (r *restoring) removeTemp() error {
	var failed error
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(r.temp + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// copyDatabase copies the database to its unfinished path.
func (r *restoring) copyDatabase() (err error) {
	if err := r.removeTemp(); err != nil {
		return err
	}
	in, err := os.Open(filepath.Join(r.dir, databaseFile))
	if err != nil {
		return fmt.Errorf("%s of the backup is %w: %w", databaseFile, ErrDamaged, err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(r.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	h := sha256.New()
	for { // in pieces, to report progress
		n, err := io.CopyN(io.MultiWriter(out, h), in, 4<<20)
		r.done += n
		r.Progress(Progress{"database", r.done, r.manifest.Database})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	r.done = 0
	if hex.EncodeToString(h.Sum(nil)) != r.sums[databaseFile] {
		return fmt.Errorf("%s of the backup is %w: %w", databaseFile, ErrDamaged, errOther)
	}
	return out.Sync()
}

// fill prepares the database and restores the files that it lists.
func (r *restoring) fill(ctx context.Context) (err error) {
	ring := r.Keyring
	if r.keys != nil {
		if ring, err = parseKeys(r.keys); err != nil {
			return err
		}
	}
	rows, err := sqlite.Open(ctx, r.temp, &sqlite.Options{Keyring: ring})
	if err != nil {
		return r.explain(err)
	}
	// Closing moves the log into the file, which then has everything.
	defer func() { err = errors.Join(err, closed(rows, r.temp)) }()
	if err := rows.CheckIntegrity(ctx); err != nil {
		return fmt.Errorf("%s of the backup is %w: %w", databaseFile, ErrDamaged, err)
	}
	if err := rows.Restored(ctx); err != nil {
		return err
	}
	if r.to.Files == nil || !r.manifest.HasFiles {
		return nil
	}
	if err := claim(ctx, rows, r.to.Files); err != nil {
		return err
	}
	r.begun = true
	known := make(map[formsvc.ID]bool, len(r.manifest.Damaged))
	for _, id := range r.manifest.Damaged {
		known[id] = true
	}
	return each(ctx, rows, true, func(f *formsvc.File) error {
		if known[f.ID] {
			return nil
		}
		err := r.bringBack(ctx, f)
		if errors.Is(err, ErrDamaged) {
			r.damaged, err = append(r.damaged, f.ID), nil
		}
		r.done += f.Size
		r.Progress(Progress{"files", r.done, r.manifest.FileBytes})
		return err
	})
}

// claim makes the blob store belong to the database, before anything is stored there.
func claim(ctx context.Context, rows *sqlite.Store, files blobstore.Store) error {
	svc, err := formsvc.New(rows, &formsvc.Options{Blobs: files})
	if err != nil {
		return err
	}
	return svc.Files.Claim(ctx, nil)
}

// explain adds to an error what the caller can't know.
func (r *restoring) explain(err error) error {
	if errors.Is(err, keyring.ErrUnknownKey) && r.keys == nil {
		return fmt.Errorf("the backup was made without its keys: %w", err)
	}
	return err
}

// bringBack copies a file of the backup, unless an interrupted restore has done so.
func (r *restoring) bringBack(ctx context.Context, f *formsvc.File) error {
	in, err := os.Open(filepath.Join(r.dir, filesDir, filepath.FromSlash(formsvc.BlobKey(f.ID))))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("file %s is %w: it is missing", f.ID, ErrDamaged)
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	err = put(ctx, f, in, r.to.Files)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, _, err := r.to.Files.Open(ctx, formsvc.BlobKey(f.ID), 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }()
	if _, err := io.Copy(io.Discard, newChecked(there, f)); err != nil {
		return fmt.Errorf("file %s, which already existed: %w", f.ID, err)
	}
	return nil
}

// writeKeys restores the keys.
func (r *restoring) writeKeys() error {
	if r.keys == nil || r.to.KeyFile == "" {
		return nil
	}
	if there, err := exists(r.to.KeyFile); err != nil || there {
		return err // checkTarget has checked that they are the same
	}
	temp := r.to.KeyFile + ".restoring"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeFile(temp, r.keys); err != nil {
		return err
	}
	return rename(temp, r.to.KeyFile)
}

// publish renames the database to its final path.
func (r *restoring) publish() error { return rename(r.temp, r.to.Database) }

// rename gives a file a new name, which must be free. Unlike a rename, a link never
// replaces a file that another process has created meanwhile, such as a server that was
// started too early.
func rename(from, to string) error {
	if err := os.Link(from, to); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s was created meanwhile: %w", to, ErrNotEmpty)
		}
		return err
	}
	if err := os.Remove(from); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

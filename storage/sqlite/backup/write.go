package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// Options are the optional settings of [Write] and [Restore].
type Options struct {
	// KeyFile is the file with the keys of the store's secrets, which Write includes. If
	// the file doesn't exist, there are no secrets yet, and Write skips it. Defaults to
	// leaving keys out.
	KeyFile string
	// Keyring has the keys of the store's secrets if they aren't included. Defaults to
	// none.
	Keyring *keyring.Keyring
	// Release is recorded by Write for information. Defaults to nothing.
	Release string
	// Progress is called often, in the caller's goroutine. Defaults to nothing.
	Progress func(Progress)
	// Now returns the time. Defaults to [time.Now].
	Now func() time.Time
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Progress == nil {
		d.Progress = func(Progress) {}
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

// Limits on how often Write begins again: with another snapshot, since a file of the one
// before was deleted, which costs nothing but a look at the files; or with another copy of
// the database, since the keys of its secrets were rotated meanwhile.
const (
	maxSnapshots = 1000
	maxRotations = 10
)

// errDeleted says that a file of the snapshot was deleted, and errRotated that a secret's key
// was removed, before it was copied.
var (
	errDeleted = errors.New("a file was deleted meanwhile")
	errRotated = errors.New("a key was rotated meanwhile")
)

// batch is the number of files read at once.
const batch = 100

// Write makes a backup in the directory dir, which must not exist; its parent must. If
// files is nil, the backup has no files, and you have to back them up elsewhere.
//
// A file that is damaged or missing in files doesn't stop the backup: Write returns its
// manifest and an error that is [ErrDamaged]. After any other error there is no backup,
// and nothing is left of it unless the process ended. The error is fs.ErrExist if dir
// exists, or if another Write was interrupted or is under way.
func Write(ctx context.Context, dir string, rows *sqlite.Store, files blobstore.Store, opts *Options) (Manifest, error) {
	w := &writing{
		Options: opts.withDefaults(), rows: rows, files: files, temp: filepath.Clean(dir) + ".incomplete",
		damaged: make(map[formsvc.ID]bool),
	}
	m, err := w.write(ctx, filepath.Clean(dir))
	if err != nil {
		return Manifest{}, fmt.Errorf("backup: %w", err)
	}
	if len(m.Damaged) > 0 {
		return m, fmt.Errorf("backup: %w: %d files are missing or damaged, and are not in the backup",
			ErrDamaged, len(m.Damaged))
	}
	return m, nil
}

type writing struct {
	Options

	rows  *sqlite.Store
	files blobstore.Store
	temp  string // path of the backup until it is complete
	to    *fileblob.Store

	damaged map[formsvc.ID]bool
	done    int64 // bytes of files copied
	all     int64
}

func (w *writing) write(ctx context.Context, dir string) (m Manifest, err error) {
	m = Manifest{Format: format, Release: w.Release, CreatedAt: w.Now().UTC(), HasFiles: w.files != nil}
	if there, err := exists(dir); err != nil || there {
		return m, errors.Join(err, fmt.Errorf("%s: %w", dir, fs.ErrExist))
	}
	if err := os.Mkdir(w.temp, 0o700); err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(w.temp))
		}
	}()
	if w.files != nil {
		if w.to, err = fileblob.Open(filepath.Join(w.temp, filesDir), nil); err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, w.to.Close()) }()
		if _, w.all, err = w.rows.CountFiles(ctx); err != nil {
			return m, err
		}
		// Most of the work, before the database is copied: a file that is deleted
		// meanwhile doesn't matter here.
		if err := w.copyFiles(ctx, w.rows); err != nil && !errors.Is(err, errDeleted) {
			return m, err
		}
	}
	if err := w.consistent(ctx, &m); err != nil {
		return m, err
	}
	return m, w.finish(dir, &m)
}

// consistent copies the database until the backup has every file that the copy lists, and
// the keys of its secrets.
func (w *writing) consistent(ctx context.Context, m *Manifest) error {
	for snapshots, rotations := 1, 1; ; {
		err := w.round(ctx, m)
		switch {
		case errors.Is(err, errDeleted) && snapshots < maxSnapshots:
			snapshots++
		case errors.Is(err, errRotated) && rotations < maxRotations:
			select { // until the rotation is over
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(rotations) * 100 * time.Millisecond):
			}
			rotations++
		case errors.Is(err, errDeleted), errors.Is(err, errRotated):
			return fmt.Errorf("%w, during each of %d snapshots of the database: try again later", err, snapshots+rotations-1)
		default:
			return err
		}
	}
}

// round copies the files that a snapshot of the database knows, then the snapshot, and then
// the keys. It fails with errDeleted or errRotated when it has to begin again.
func (w *writing) round(ctx context.Context, m *Manifest) (err error) {
	path := filepath.Join(w.temp, databaseFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	opts := sqlite.BackupOptions{Progress: func(done, all int64) { w.Progress(Progress{"database", done, all}) }}
	if w.files != nil {
		// The files come first, since they can go while the pages are copied.
		opts.Snapshot = func(ctx context.Context, known formsvc.FileStore) error { return w.copyFiles(ctx, known) }
	}
	if err := w.rows.Backup(ctx, path, &opts); err != nil {
		return err
	}
	ring, err := w.copyKeys(m)
	if err != nil {
		return err
	}
	copied, err := sqlite.Open(ctx, path, &sqlite.Options{SkipMigrations: true, Keyring: ring})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	if err := copied.CheckKeys(ctx); err != nil {
		if w.KeyFile != "" && errors.Is(err, keyring.ErrUnknownKey) {
			return errRotated
		}
		return err
	}
	if err := copied.CheckIntegrity(ctx); err != nil {
		return fmt.Errorf("the database is %w: %w", ErrDamaged, err)
	}
	steps, err := copied.Migrations(ctx)
	if err != nil {
		return err
	}
	m.Schema = 0
	for _, step := range steps {
		if !step.AppliedAt.IsZero() {
			m.Schema++
		}
	}
	if w.files == nil {
		return w.sum(ctx, copied, m)
	}
	if err := w.dropUnknown(ctx, copied); err != nil {
		return err
	}
	return w.sum(ctx, copied, m)
}

// copyKeys copies the keys and returns those to check the copied database with.
func (w *writing) copyKeys(m *Manifest) (*keyring.Keyring, error) {
	if w.KeyFile == "" {
		return w.Keyring, nil
	}
	text, err := os.ReadFile(w.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return w.Keyring, nil
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(w.temp, keysFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	m.HasKeys = true
	if err := writeFile(path, text); err != nil {
		return nil, err
	}
	return parseKeys(text)
}

func parseKeys(text []byte) (*keyring.Keyring, error) {
	list, err := keyring.Parse(string(text))
	if err != nil {
		return nil, err
	}
	return keyring.New(list...)
}

// sum writes SHA256SUMS. It closes the copied database first, so that it can't change
// anymore.
func (w *writing) sum(ctx context.Context, copied *sqlite.Store, m *Manifest) (err error) {
	f, err := os.OpenFile(filepath.Join(w.temp, sumsFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	m.Files, m.FileBytes, m.Damaged = 0, 0, nil
	err = each(ctx, copied, true, func(file *formsvc.File) error {
		if w.files == nil {
			return nil
		}
		if w.damaged[file.ID] {
			m.Damaged = append(m.Damaged, file.ID)
			return nil
		}
		m.Files++
		m.FileBytes += file.Size
		_, err := fmt.Fprintf(out, "%x  %s/%s\n", file.SHA256, filesDir, formsvc.BlobKey(file.ID))
		return err
	})
	if err != nil {
		return err
	}
	if err := closed(copied, filepath.Join(w.temp, databaseFile)); err != nil {
		return err
	}
	names := []string{databaseFile}
	if m.HasKeys {
		names = append(names, keysFile)
	}
	for _, name := range names {
		sum, size, err := sumOf(filepath.Join(w.temp, name))
		if err != nil {
			return err
		}
		if name == databaseFile {
			m.Database = size
		}
		if _, err := fmt.Fprintf(out, "%s  %s\n", sum, name); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// finish renames the backup to its final name.
func (w *writing) finish(dir string, m *Manifest) error {
	if w.files != nil {
		if err := os.Remove(filepath.Join(w.temp, filesDir, ".tmp")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	sum, _, err := sumOf(filepath.Join(w.temp, sumsFile))
	if err != nil {
		return err
	}
	m.Sums = sum
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(w.temp, manifestFile), append(text, '\n')); err != nil {
		return err
	}
	if err := syncDir(w.temp); err != nil {
		return err
	}
	if there, err := exists(dir); err != nil || there { // because a rename would replace an empty directory
		return errors.Join(err, fmt.Errorf("%s: %w", dir, fs.ErrExist))
	}
	if err := os.Rename(w.temp, dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

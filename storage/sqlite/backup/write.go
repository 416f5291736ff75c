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
	// KeyFile is the file with the keys of the store's secrets, which Write takes along.
	// A file that isn't there is left out: there are no secrets yet. Defaults to taking
	// no keys along.
	KeyFile string
	// Keyring has the keys of the store's secrets where they are not taken along.
	// Defaults to none.
	Keyring *keyring.Keyring
	// Release is noted by Write, for people. Defaults to nothing.
	Release string
	// Progress is called often, from the goroutine of the caller. Defaults to nothing.
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

// rounds is how often the database is copied because files went meanwhile.
const rounds = 10

// batch is how many files are asked for at once.
const batch = 100

// Write makes a backup in the directory dir, which must not exist; the one above it
// must. files may be nil: then the backup has none, and they are kept safe elsewhere.
//
// A file that is damaged or missing in files doesn't keep the rest from being safe: the
// backup is made, Write returns its manifest and an error that is [ErrDamaged]. After any
// other error there is no backup, and nothing is left of it unless the process ended.
// fs.ErrExist: there is something at dir, or another Write was cut off, or is at work.
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
		return m, fmt.Errorf("backup: %w: %d files are missing or not what was uploaded, and are not in the backup",
			ErrDamaged, len(m.Damaged))
	}
	return m, nil
}

type writing struct {
	Options

	rows  *sqlite.Store
	files blobstore.Store
	temp  string // where the backup is until it is whole
	to    *fileblob.Store

	damaged map[formsvc.ID]bool
	done    int64 // bytes of files that are copied
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
		// Most of the work, before the database is copied: what goes meanwhile then
		// costs nothing.
		if _, err := w.copyFiles(ctx, w.rows); err != nil {
			return m, err
		}
	}
	if err := w.consistent(ctx, &m); err != nil {
		return m, err
	}
	return m, w.finish(dir, &m)
}

// consistent copies the database until the backup has every file that the copy knows,
// and the keys of its secrets.
func (w *writing) consistent(ctx context.Context, m *Manifest) error {
	for n := range rounds {
		again, err := w.round(ctx, m)
		if err != nil || !again {
			return err
		}
		select { // whoever deletes, or changes keys, may come to an end
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(n) * 100 * time.Millisecond):
		}
	}
	return fmt.Errorf("files were deleted, or keys exchanged, during each of %d attempts: try again later", rounds)
}

// round copies the database and what it needs. again says that something it needs went
// meanwhile.
func (w *writing) round(ctx context.Context, m *Manifest) (again bool, err error) {
	path := filepath.Join(w.temp, databaseFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	err = w.rows.Backup(ctx, path, &sqlite.BackupOptions{
		Progress: func(done, all int64) { w.Progress(Progress{"database", done, all}) },
	})
	if err != nil {
		return false, err
	}
	ring, err := w.copyKeys(m)
	if err != nil {
		return false, err
	}
	copied, err := sqlite.Open(ctx, path, &sqlite.Options{SkipMigrations: true, Keyring: ring})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	if err := copied.CheckKeys(ctx); err != nil {
		if w.KeyFile != "" && errors.Is(err, keyring.ErrUnknownKey) {
			return true, nil // rotated between the two
		}
		return false, err
	}
	if err := copied.CheckIntegrity(ctx); err != nil {
		return false, fmt.Errorf("the database is %w: %w", ErrDamaged, err)
	}
	steps, err := copied.Migrations(ctx)
	if err != nil {
		return false, err
	}
	m.Schema = 0
	for _, step := range steps {
		if !step.AppliedAt.IsZero() {
			m.Schema++
		}
	}
	if w.files == nil {
		return false, w.sum(ctx, copied, m)
	}
	if gone, err := w.copyFiles(ctx, copied); err != nil || gone {
		return gone, err
	}
	if err := w.dropUnknown(ctx, copied); err != nil {
		return false, err
	}
	return false, w.sum(ctx, copied, m)
}

// copyKeys takes the keys along and returns those that the copy is to be tried with.
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

// sum writes SHA256SUMS. The copy must not change anymore, so it is closed first.
func (w *writing) sum(ctx context.Context, copied *sqlite.Store, m *Manifest) (err error) {
	f, err := os.OpenFile(filepath.Join(w.temp, sumsFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	m.Files, m.FileBytes, m.Damaged = 0, 0, nil
	err = each(ctx, copied, func(file *formsvc.File) error {
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

// finish gives the backup its name.
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
	if there, err := exists(dir); err != nil || there { // a rename would put it in place of an empty directory
		return errors.Join(err, fmt.Errorf("%s: %w", dir, fs.ErrExist))
	}
	if err := os.Rename(w.temp, dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

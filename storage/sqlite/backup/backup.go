// Package backup copies a SQLite store with its files and the keys of its secrets to a directory while all of them are in
// use, and restores them.
//
//	manifest.json   what the backup has, and when and by what it was made
//	SHA256SUMS      of all that follows; "sha256sum --quiet -c SHA256SUMS" checks a copy
//	formsvc.db      the database
//	files/          the bytes of each file under its blobstore key
//	secret.keys     the keys, if they are included
//
// A backup appears under its name complete or not at all; until then its directory ends in ".incomplete". It has everything
// that was acknowledged before [Write] began, and may have later writes. It has every file that its database lists, except
// those that were damaged before, which [Manifest.Damaged] names. Anyone with a backup can read all answers, and with the
// keys can sign webhooks in the service's name.
//
// [Restore] creates the database as it was. Pending deliveries are sent again. Keys that were revoked after the backup work
// again, and people who were erased after it are back: revoke and erase them again.
//
// Back up Postgres with its own tools.
package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/disk"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// The names of files in a backup.
const (
	manifestFile = "manifest.json"
	sumsFile     = "SHA256SUMS"
	databaseFile = "formsvc.db"
	filesDir     = "files"
	keysFile     = "secret.keys"
)

// Errors to test for with [errors.Is].
var (
	// ErrNoBackup means that the directory isn't a backup, or not a complete one.
	ErrNoBackup = errors.New("not a whole backup")
	// ErrDamaged means that something in a backup, or in the data to back up, is missing or has changed.
	ErrDamaged = errors.New("damaged")
	// ErrNotEmpty means that something exists where a restore would write.
	ErrNotEmpty = errors.New("not empty")

	errAgain = errors.New("files were deleted or keys replaced during each copy of the database: try again later")
)

// attempts is how often Write copies the database, because a file that it lists was deleted, or a key replaced, meanwhile.
const attempts = 20

// A Manifest says what a backup has.
type Manifest struct {
	Format    int       `json:"format"`            // 1
	Release   string    `json:"release,omitempty"` // see Options.Release
	CreatedAt time.Time `json:"createdAt"`         // when Write began
	Database  int64     `json:"databaseBytes"`
	Files     int       `json:"files"`
	FileBytes int64     `json:"fileBytes"`
	HasFiles  bool      `json:"hasFiles"` // false: the files are stored elsewhere
	HasKeys   bool      `json:"hasKeys"`
	// Damaged are files that the database lists but the backup doesn't have, because their bytes were missing or damaged.
	Damaged []formsvc.ID `json:"damaged,omitempty"`
	Sums    string       `json:"sha256sums"` // the SHA-256 of SHA256SUMS
}

// Options are the optional settings of [Write] and [Restore].
type Options struct {
	// KeyFile is the file with the keys of the store's secrets, which Write includes if it exists. Defaults to leaving keys out.
	KeyFile string
	// Keyring has the keys of the store's secrets if they aren't included. Defaults to none.
	Keyring *keyring.Keyring
	// Release is recorded by Write. Defaults to nothing.
	Release string
	// Progress is called with the bytes of files that were copied. Defaults to nothing.
	Progress func(bytes int64)
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Progress == nil {
		d.Progress = func(int64) {}
	}
	return d
}

// Write makes a backup in the directory dir, which must not exist; its parent must. If files is nil, the backup has no
// files. Damaged or missing files don't stop it: Write returns the manifest and [ErrDamaged]. After any other error there is
// no backup. The error is fs.ErrExist if dir exists, or if another Write was interrupted or is running.
func Write(ctx context.Context, dir string, rows *sqlite.Store, files blobstore.Store, opts *Options) (Manifest, error) {
	dir = filepath.Clean(dir)
	w := &writing{Options: opts.withDefaults(), rows: rows, files: files, temp: dir + ".incomplete", damaged: make(map[formsvc.ID]bool)}
	w.m = Manifest{Format: 1, Release: w.Release, CreatedAt: time.Now().UTC(), HasFiles: files != nil}
	if err := w.write(ctx, dir); err != nil {
		return Manifest{}, fmt.Errorf("backup: %w", err)
	}
	if len(w.m.Damaged) > 0 {
		return w.m, fmt.Errorf("backup: %w: %d files are missing or damaged, and are not in the backup", ErrDamaged, len(w.m.Damaged))
	}
	return w.m, nil
}

type writing struct {
	Options

	m       Manifest
	rows    *sqlite.Store
	files   blobstore.Store
	temp    string          // path of the backup until it is complete
	to      *fileblob.Store // its files
	damaged map[formsvc.ID]bool
	done    int64
}

func (w *writing) path(name string) string { return filepath.Join(w.temp, name) }

func (w *writing) write(ctx context.Context, dir string) (err error) {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s: %w", dir, fs.ErrExist))
	}
	if err := os.Mkdir(w.temp, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(w.temp))
		}
	}()
	if w.files != nil {
		if w.to, err = fileblob.Open(w.path(filesDir)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.to.Close()) }()
	}
	for n := 1; ; n++ {
		if err = w.snapshot(ctx); !errors.Is(err, errAgain) || n == attempts {
			break
		}
	}
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(w.m, "", "  ")
	if err != nil {
		return err
	}
	if err := errors.Join(disk.WriteFile(w.path(manifestFile), append(text, '\n')), disk.SyncDir(w.temp), os.Rename(w.temp, dir)); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(dir))
}

// snapshot copies the database, the keys, and the files that the copy lists and that are not copied yet. It fails with
// errAgain if one of these has gone meanwhile.
func (w *writing) snapshot(ctx context.Context) (err error) {
	for _, name := range []string{databaseFile, keysFile, sumsFile} {
		if err := os.Remove(w.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := w.rows.Backup(ctx, w.path(databaseFile)); err != nil {
		return err
	}
	ring := w.Keyring
	if text, err := os.ReadFile(w.KeyFile); err == nil {
		w.m.HasKeys = true
		if err := disk.WriteFile(w.path(keysFile), text); err != nil {
			return err
		}
		if ring, err = keyring.OpenFile(w.path(keysFile)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	copied, err := sqlite.Open(ctx, w.path(databaseFile), &sqlite.Options{SkipMigrations: true, Keyring: ring})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	if err := copied.CheckKeys(ctx); err != nil {
		if w.m.HasKeys && errors.Is(err, keyring.ErrUnknownKey) {
			return errAgain
		}
		return err
	}
	if err := copied.CheckIntegrity(ctx); err != nil {
		return fmt.Errorf("the database is %w: %w", ErrDamaged, err)
	}
	var sums strings.Builder
	if w.files != nil {
		if err := w.copyFiles(ctx, copied, &sums); err != nil {
			return err
		}
	}
	if err := copied.Close(); err != nil { // so that all is in the file
		return err
	}
	return w.sum(&sums)
}

// copyFiles copies the files that the copied database lists, adds their sums, and removes the others.
func (w *writing) copyFiles(ctx context.Context, copied *sqlite.Store, sums *strings.Builder) error {
	w.m.Files, w.m.FileBytes, w.m.Damaged = 0, 0, nil
	listed, gone := make(map[string]bool), false
	for f, err := range formsvc.AllFiles(ctx, copied) {
		if err == nil {
			err = w.copyFile(ctx, f)
		}
		switch {
		case errors.Is(err, formsvc.ErrNotFound):
			gone = true
		case errors.Is(err, ErrDamaged):
			w.damaged[f.ID] = true
			w.m.Damaged = append(w.m.Damaged, f.ID)
		case err != nil:
			return err
		default:
			key := formsvc.BlobKey(f.ID)
			listed[key] = true
			w.m.Files++
			w.m.FileBytes += f.Size
			fmt.Fprintf(sums, "%x  %s/%s\n", f.SHA256, filesDir, key)
		}
	}
	if gone {
		return errAgain
	}
	for info, err := range w.to.List(ctx, "") {
		if err == nil && !listed[info.Key] {
			err = w.to.Delete(ctx, info.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file, unless it has done so. It fails with ErrNotFound if the file was deleted meanwhile, and with
// ErrDamaged if its bytes are missing or not those that were uploaded.
func (w *writing) copyFile(ctx context.Context, f *formsvc.File) error {
	key := formsvc.BlobKey(f.ID)
	if _, err := w.to.Stat(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := fmt.Errorf("file %s is %w", f.ID, ErrDamaged)
	if !w.damaged[f.ID] {
		in, _, openErr := w.files.Open(ctx, key, 0, -1)
		if err = openErr; err == nil {
			err = errors.Join(put(ctx, f, in, w.to), in.Close())
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		if _, err := w.rows.File(ctx, formsvc.FileKey{AccountID: f.AccountID, ID: f.ID}); err != nil {
			return err
		}
		return fmt.Errorf("file %s is %w", f.ID, ErrDamaged)
	}
	w.done += f.Size
	w.Progress(w.done)
	return err
}

// sum writes SHA256SUMS.
func (w *writing) sum(sums *strings.Builder) error {
	for _, name := range []string{databaseFile, keysFile} {
		if name == keysFile && !w.m.HasKeys {
			continue
		}
		sum, size, err := sumOf(w.path(name))
		if err != nil {
			return err
		}
		if name == databaseFile {
			w.m.Database = size
		}
		fmt.Fprintf(sums, "%x  %s\n", sum, name)
	}
	w.m.Sums = fmt.Sprintf("%x", sha256.Sum256([]byte(sums.String())))
	return disk.WriteFile(w.path(sumsFile), []byte(sums.String()))
}

// put stores a file. If the bytes aren't those that were uploaded, it stores nothing and fails with ErrDamaged.
func put(ctx context.Context, f *formsvc.File, in io.Reader, to blobstore.Store) error {
	h := sha256.New()
	checked := io.TeeReader(io.LimitReader(in, f.Size), h)
	_, err := to.Put(ctx, formsvc.BlobKey(f.ID), readerFunc(func(p []byte) (int, error) {
		n, err := checked.Read(p)
		if errors.Is(err, io.EOF) && !bytes.Equal(h.Sum(nil), f.SHA256[:]) {
			return n, fmt.Errorf("file %s is %w: its SHA-256 differs", f.ID, ErrDamaged)
		}
		return n, err
	}))
	return err
}

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

// sumOf returns the SHA-256 and the length of a file.
func sumOf(path string) (sum []byte, size int64, err error) {
	f, err := os.Open(path) //nolint:gosec // below a directory that the caller names
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return h.Sum(nil), size, err
}

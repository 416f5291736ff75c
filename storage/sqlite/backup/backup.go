// Package backup copies a SQLite store with its files and the keys of its secrets to a directory while all of them are in
// use, and restores them.
//
//	formsvc.db      the database
//	files/          the bytes of each file under its blobstore key; missing if the files are stored elsewhere
//	secret.keys     the keys, if they are included
//	SHA256SUMS      of all these; "sha256sum --quiet -c SHA256SUMS" checks a copy
//
// A backup appears under its name complete or not at all; until then its directory ends in ".incomplete". It has everything
// that was acknowledged before [Write] began, and may have later writes. It has every file that its database lists, except
// those that were damaged before, which [Summary.Damaged] names. Anyone with a backup can read all answers, and with the
// keys can sign webhooks in the service's name.
//
// [Restore] creates the database as it was. Pending deliveries are sent again. Keys that were revoked after the backup work
// again, and people who were erased after it are back: revoke and erase them again.
//
// Back up Postgres with its own tools.
package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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

// The names of files in a backup.
const (
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

// A Summary says what was backed up or restored.
type Summary struct {
	Database  int64 `json:"databaseBytes"`
	Files     int   `json:"files"`
	FileBytes int64 `json:"fileBytes"`
	HasFiles  bool  `json:"hasFiles"` // false: the files are stored elsewhere
	HasKeys   bool  `json:"hasKeys"`
	// Damaged are files that the database lists but whose bytes were missing or damaged.
	Damaged []formsvc.ID `json:"damaged,omitempty"`
}

// add counts a file that was copied, or is damaged.
func (s *Summary) add(f *formsvc.File, damaged bool, progress func(bytes int64)) {
	if damaged {
		s.Damaged = append(s.Damaged, f.ID)
		return
	}
	s.Files++
	s.FileBytes += f.Size
	if progress != nil {
		progress(s.FileBytes)
	}
}

// failure returns ErrDamaged if there are damaged files.
func (s *Summary) failure() error {
	if len(s.Damaged) == 0 {
		return nil
	}
	return fmt.Errorf("backup: %d files are missing or %w; everything else was copied", len(s.Damaged), ErrDamaged)
}

// A Source is what is backed up. Only Store is required.
type Source struct {
	Store *sqlite.Store
	// Files has the files of the store. Defaults to leaving them out.
	Files blobstore.Store
	// KeyFile is the file with the keys of the store's secrets, which is included if it exists. Defaults to leaving keys out.
	KeyFile string
	// Progress is called with the bytes of files that were copied. Defaults to nothing.
	Progress func(bytes int64)
}

// Write makes a backup in the directory dir, which must not exist; its parent must. Damaged or missing files don't stop it:
// Write returns a Summary that names them, and [ErrDamaged]. After any other error there is no backup. The error is fs.ErrExist
// if dir exists, or if another Write was interrupted or is running.
func Write(ctx context.Context, dir string, from Source) (Summary, error) {
	dir = filepath.Clean(dir)
	w := &writing{Source: from, temp: dir + ".incomplete"}
	if err := w.write(ctx, dir); err != nil {
		return Summary{}, fmt.Errorf("backup: %w", err)
	}
	return w.summary, w.summary.failure()
}

type writing struct {
	Source

	summary Summary
	svc     *formsvc.Service
	to      *fileblob.Store // the files of the backup; nil: none
	temp    string          // path of the backup until it is complete
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
	if w.Files != nil {
		if w.svc, err = formsvc.New(w.Store, &formsvc.Options{Blobs: w.Files}); err != nil {
			return err
		}
		if w.to, err = fileblob.Open(w.path(filesDir)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.to.Close()) }()
	}
	for range attempts {
		if err = w.snapshot(ctx); !errors.Is(err, errAgain) {
			break
		}
	}
	if err == nil {
		err = disk.SyncDir(w.temp)
	}
	if err == nil {
		err = os.Rename(w.temp, dir)
	}
	if err != nil {
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
	if err := w.Store.Backup(ctx, w.path(databaseFile)); err != nil {
		return err
	}
	w.summary = Summary{HasFiles: w.to != nil}
	var ring *keyring.Keyring
	if text, err := os.ReadFile(w.KeyFile); err == nil {
		w.summary.HasKeys = true
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
	if w.summary.HasKeys {
		if err := copied.CheckKeys(ctx); errors.Is(err, keyring.ErrUnknownKey) {
			return errAgain
		} else if err != nil {
			return err
		}
	}
	if err := copied.CheckIntegrity(ctx); err != nil {
		return fmt.Errorf("the database is %w: %w", ErrDamaged, err)
	}
	var sums strings.Builder
	if w.to != nil {
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
	listed, gone := make(map[string]bool), false
	for f, err := range formsvc.AllFiles(ctx, copied) {
		if err == nil {
			err = w.svc.Files.CopyTo(ctx, f, w.to)
		}
		damaged := errors.Is(err, formsvc.ErrCorrupt)
		if damaged {
			_, err = w.Store.File(ctx, formsvc.FileKey{AccountID: f.AccountID, ID: f.ID})
		}
		if errors.Is(err, formsvc.ErrNotFound) { // deleted since the database was copied
			gone = true
			continue
		}
		if err != nil {
			return err
		}
		w.summary.add(f, damaged, w.Progress)
		if key := formsvc.BlobKey(f.ID); !damaged {
			listed[key] = true
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

// sum writes SHA256SUMS.
func (w *writing) sum(sums *strings.Builder) error {
	names := []string{databaseFile}
	if w.summary.HasKeys {
		names = append(names, keysFile)
	}
	for _, name := range names {
		line, size, err := copySum(w.path(name), io.Discard)
		if err != nil {
			return err
		}
		if name == databaseFile {
			w.summary.Database = size
		}
		sums.WriteString(line)
	}
	return disk.WriteFile(w.path(sumsFile), []byte(sums.String()))
}

// copySum copies the content of a file, and returns its line in SHA256SUMS and its length.
func copySum(path string, to io.Writer) (line string, size int64, err error) {
	f, err := os.Open(path) //nolint:gosec // below a directory that the caller names
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(h, to), f)
	return fmt.Sprintf("%x  %s\n", h.Sum(nil), filepath.Base(path)), size, err
}

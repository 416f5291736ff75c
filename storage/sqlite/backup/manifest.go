package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/formsvc/toolkit/formsvc"
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

// format is the version of the layout. A release reads its own version and older ones.
const format = 1

// Errors that callers may want to tell apart with [errors.Is].
var (
	// ErrNoBackup means that the directory isn't a backup, or not a complete one.
	ErrNoBackup = errors.New("not a whole backup")
	// ErrNewer means that a newer release made the backup.
	ErrNewer = errors.New("the backup was made by a newer release")
	// ErrDamaged means that something in a backup, or in the data to back up, is missing
	// or has changed.
	ErrDamaged = errors.New("damaged")
	// ErrNotEmpty means that something exists where a restore would write.
	ErrNotEmpty = errors.New("not empty")
)

// A Manifest says what a backup has.
type Manifest struct {
	Format    int       `json:"format"`
	Release   string    `json:"release,omitempty"` // of the program that made it; see Options.Release
	Schema    int       `json:"schema"`            // number of schema migrations that the database has
	CreatedAt time.Time `json:"createdAt"`         // when Write began
	Database  int64     `json:"databaseBytes"`
	Files     int       `json:"files"`
	FileBytes int64     `json:"fileBytes"`
	HasFiles  bool      `json:"hasFiles"` // false: the files are stored elsewhere
	HasKeys   bool      `json:"hasKeys"`
	// Damaged are files that the database lists but the backup doesn't have, because
	// their bytes were missing or damaged when it was made.
	Damaged []formsvc.ID `json:"damaged,omitempty"`
	// Sums is the SHA-256 of SHA256SUMS.
	Sums string `json:"sha256sums"`
}

// Read returns the manifest of a backup. It fails with [ErrNoBackup] or [ErrNewer].
func Read(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, manifestFile)) //nolint:gosec // the caller names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("backup: %s: %w: there is no %s", dir, ErrNoBackup, manifestFile)
	}
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Format < 1 {
		return m, fmt.Errorf("backup: %s: %w: %s can't be read", dir, ErrNoBackup, manifestFile)
	}
	if m.Format > format {
		return m, fmt.Errorf("backup: %s: %w: it has format %d, this one knows %d", dir, ErrNewer, m.Format, format)
	}
	return m, nil
}

// Progress says how far a call has got, in bytes; the total is 0 while it is unknown.
type Progress struct {
	Stage     string // "database" or "files"
	Done, All int64
}

// sumOf returns the SHA-256 of a file, in hex, and its length.
func sumOf(path string) (sum string, size int64, err error) {
	f, err := os.Open(path) //nolint:gosec // below a directory that the caller names
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// writeFile creates a file that is on disk when it returns nil.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // below a directory that the caller names
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the caller names it
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// closed closes a database and checks that all of its data is in its file.
func closed(rows *sqlite.Store, path string) error {
	if err := rows.Close(); err != nil {
		return err
	}
	if there, err := exists(path + "-wal"); err != nil || there {
		return errors.Join(err, fmt.Errorf("%s-wal still exists: another program uses the copy", path))
	}
	return nil
}

// exists reports whether a path exists.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

package fileblob_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// Entries of the directory that aren't regular files aren't blobs, and links aren't followed.
func TestForeignFilesAreNotBlobs(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	s, dir := newStore(t)
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "ab/absolute")))
	must(t, os.Symlink("kept", filepath.Join(dir, "ab/inside")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "ab/dangling")))
	must(t, os.Symlink(outside, filepath.Join(dir, "out")))
	must(t, os.Symlink("ab", filepath.Join(dir, "in")))
	must(t, os.Mkdir(filepath.Join(dir, "ab/dir"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "ab/UPPER"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "ab/.hidden"), nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "lost+found/ab"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "lost+found/ab/kept"), nil, 0o600))

	wantAll(t, s, "ab/kept")
	for _, key := range []string{
		"ab/absolute", "ab/inside", "ab/dangling", "out", "out/secret", "in", "in/kept", "ab/dir", "ab",
	} {
		for name, err := range every(t, s, key) {
			wantError(t, name+" "+key, err, fs.ErrNotExist)
		}
		if _, err := os.Lstat(filepath.Join(dir, key)); err != nil && key != "out/secret" {
			t.Errorf("%s was there: %v", key, err)
		}
		_, err := s.Put(t.Context(), key, strings.NewReader("new"))
		if err == nil {
			t.Errorf("Put %s succeeded", key)
		}
	}
	for _, key := range []string{"out/new", "in/new", "ab/absolute/new"} {
		_, err := s.Put(t.Context(), key, strings.NewReader("new"))
		wantError(t, "Put "+key, err, blobstore.ErrUnavailable)
	}
	_, err := s.Put(t.Context(), "ab/kept/new", strings.NewReader("new"))
	wantError(t, "Put below a blob", err, fs.ErrExist)
	wantAll(t, s, "ab/kept")
	wantBlob(t, s, "ab/kept", "kept")
	wantTemp(t, dir, 0)
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside there are %v, error %v", entries, err)
	}
}

// A directory for unfinished files that leads outside is refused.
func TestTempOutsideTheDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	old := filepath.Join(outside, "old")
	must(t, os.WriteFile(old, nil, 0o600))
	s, dir := newStore(t)
	must(t, os.Remove(filepath.Join(dir, ".tmp")))
	must(t, os.Symlink(outside, filepath.Join(dir, ".tmp")))
	_, err := s.Put(t.Context(), "ab/new", strings.NewReader("new"))
	wantError(t, "Put", err, blobstore.ErrUnavailable)
	if _, err := s.Clean(t.Context(), time.Now().Add(time.Hour)); err == nil {
		t.Error("Clean of another directory succeeded")
	}
	if _, err := os.Stat(old); err != nil {
		t.Error(err)
	}
	// If it is removed, it is created again.
	must(t, os.Remove(filepath.Join(dir, ".tmp")))
	if n, err := s.Clean(t.Context(), time.Now()); n != 0 || err != nil {
		t.Errorf("Clean removes %d, error %v", n, err)
	}
	put(t, s, "ab/new", "new")
	wantBlob(t, s, "ab/new", "new")
}

// A directory that disappeared doesn't look empty.
func TestMissingDirectoryIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(t *testing.T, dir string){
		"removed": func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
		"moved":   func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".old")) },
		"replaced": func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+".old"))
			must(t, os.Mkdir(dir, 0o700))
		},
		"a file": func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.WriteFile(dir, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "blobs")
			s := open(t, dir)
			put(t, s, "ab/kept", "kept")
			_, err := s.Put(t.Context(), "ab/meanwhile", io.MultiReader(strings.NewReader("new"), funcReader(func() {
				take(t, dir)
			})))
			wantAway(t, "Put while it went away", err)
			for name, err := range every(t, s, "ab/none") {
				wantAway(t, name, err)
			}
			wantAway(t, "List", list(t, s))
			_, err = s.Put(t.Context(), "ab/new", strings.NewReader("new"))
			wantAway(t, "Put", err)
		})
	}
}

func wantAway(t *testing.T, what string, err error) {
	t.Helper()
	wantError(t, what, err, blobstore.ErrUnavailable)
}

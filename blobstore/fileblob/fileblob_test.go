package fileblob_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/blobtest"
	"github.com/formsvc/toolkit/blobstore/fileblob"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	var dirs sync.Map // by store
	blobtest.Run(t, func(t testing.TB) blobstore.Store {
		dir := filepath.Join(t.TempDir(), "blobs")
		s := open(t, dir)
		dirs.Store(s, dir)
		return s
	}, blobtest.Options{
		Reopen: func(t testing.TB, s blobstore.Store) blobstore.Store {
			dir, _ := dirs.Load(s)
			return open(t, dir.(string))
		},
		CutOff: func(t testing.TB, s blobstore.Store) {
			dir, _ := dirs.Load(s)
			cutOff(t, dir.(string))
		},
	})
}

func open(t testing.TB, dir string) *fileblob.Store {
	t.Helper()
	s, err := fileblob.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// newStore returns a Store with one blob, "ab/kept", and its directory.
func newStore(t testing.TB) (*fileblob.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "ab/kept", "kept")
	return s, dir
}

func put(t testing.TB, s blobstore.Store, key, content string) {
	t.Helper()
	if _, err := s.Put(t.Context(), key, strings.NewReader(content)); err != nil {
		t.Fatalf("Put %s: %v", key, err)
	}
}

func read(t testing.TB, s blobstore.Store, key string) (string, error) {
	t.Helper()
	r, _, err := s.Open(t.Context(), key, 0, -1)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(r)
	return string(b), err
}

func wantBlob(t testing.TB, s blobstore.Store, key, want string) {
	t.Helper()
	if got, err := read(t, s, key); err != nil || got != want {
		t.Errorf("%s is %q with error %v, want %q", key, got, err, want)
	}
}

func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantAll checks which blobs are listed.
func wantAll(t testing.TB, s blobstore.Store, want ...string) {
	t.Helper()
	var got []string
	for info, err := range s.List(context.WithoutCancel(t.Context()), "") {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		got = append(got, info.Key)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("List: %q, want %q", got, want)
	}
}

// wantTemp checks the number of unfinished files.
func wantTemp(t testing.TB, dir string, want int) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, ".tmp"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != want {
		t.Errorf("%d files of unfinished Puts, want %d", len(entries), want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// every calls each method for a key.
func every(t testing.TB, s blobstore.Store, key string) map[string]error {
	t.Helper()
	_, stat := s.Stat(t.Context(), key)
	_, open := read(t, s, key)
	return map[string]error{"Stat": stat, "Open": open, "Delete": s.Delete(t.Context(), key)}
}

func list(t testing.TB, s blobstore.Store) error {
	t.Helper()
	for _, err := range s.List(t.Context(), "") {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestLayout(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, dir)
	put(t, s, "ab/cd/ef", "content")
	for path, mode := range map[string]fs.FileMode{"": 0o700, ".tmp": 0o700, "ab": 0o700, "ab/cd": 0o700, "ab/cd/ef": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		must(t, err)
		if info.Mode().Perm() != mode {
			t.Errorf("%q has mode %v, want %v", path, info.Mode(), mode)
		}
	}
	wantTemp(t, dir, 0)
	got, err := os.ReadFile(filepath.Join(dir, "ab/cd/ef"))
	if err != nil || string(got) != "content" {
		t.Errorf("the file has %q, error %v", got, err)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "tmp-is-file"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "tmp-is-file/.tmp"), nil, 0o600))
	for name, c := range map[string]struct {
		dir  string
		want error
	}{
		"nothing above":  {"none/blobs", blobstore.ErrUnavailable},
		"a file":         {"file", nil},
		"below a file":   {"file/blobs", blobstore.ErrUnavailable},
		"a file as .tmp": {"tmp-is-file", blobstore.ErrUnavailable},
	} {
		s, err := fileblob.Open(filepath.Join(dir, c.dir))
		if err == nil {
			t.Errorf("%s: a Store", name)
			_ = s.Close()
		} else if c.want != nil {
			wantError(t, name, err, c.want)
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	must(t, s.Close())
	for name, err := range every(t, s, "ab/kept") {
		wantError(t, name, err, fs.ErrClosed)
	}
	_, err := s.Put(t.Context(), "ab/new", strings.NewReader("new"))
	wantError(t, "Put", err, fs.ErrClosed)
	wantError(t, "List", list(t, s), fs.ErrClosed)
	_, err = s.Clean(t.Context(), time.Now())
	wantError(t, "Clean", err, fs.ErrClosed)
}

// An unreadable part of the directory is never left out of a list.
func TestUnreadableDirectoryFailsTheList(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	must(t, os.Mkdir(filepath.Join(dir, "cd"), 0))
	if _, err := os.ReadDir(filepath.Join(dir, "cd")); err == nil {
		t.Skip("this user reads everything; TestListFaults does the same with strace")
	}
	wantError(t, "List", list(t, s), blobstore.ErrUnavailable)
}

// A file that is truncated while it is read doesn't look complete.
func TestTruncated(t *testing.T) {
	t.Parallel()
	for _, left := range []int64{0, 1, 100 << 10} {
		s, dir := newStore(t)
		put(t, s, "ab/cut", strings.Repeat("content ", 50_000))
		r, info, err := s.Open(t.Context(), "ab/cut", 0, -1)
		must(t, err)
		must(t, os.Truncate(filepath.Join(dir, "ab/cut"), left))
		got, err := io.ReadAll(r)
		wantError(t, "reading a file that was cut", err, io.ErrUnexpectedEOF)
		if int64(len(got)) != left || info.Size != 400_000 {
			t.Errorf("%d bytes of %d, want %d", len(got), info.Size, left)
		}
		must(t, r.Close())
	}
}

// Clean removes only old files.
func TestClean(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	now := time.Now()
	temp := func(name string) string { return filepath.Join(dir, ".tmp", name) }
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "older": 48 * time.Hour, "new": 0} {
		must(t, os.WriteFile(temp(name), []byte("half"), 0o600))
		must(t, os.Chtimes(temp(name), now.Add(-age), now.Add(-age)))
	}
	// The remains of a Put that ended between its two names.
	must(t, os.Link(filepath.Join(dir, "ab/kept"), temp("linked")))
	must(t, os.Chtimes(temp("linked"), now.Add(-2*time.Hour), now.Add(-2*time.Hour)))
	must(t, os.Mkdir(temp("dir"), 0o700))
	must(t, os.Symlink("../ab/kept", temp("link")))
	n, err := s.Clean(t.Context(), now.Add(-time.Hour))
	if n != 3 || err != nil {
		t.Errorf("Clean removes %d, error %v, want 3", n, err)
	}
	wantTemp(t, dir, 3)
	wantBlob(t, s, "ab/kept", "kept")
}

// A panicking reader leaves nothing behind.
func TestPanickingReaderLeavesNothing(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	func() {
		defer func() { _ = recover() }()
		_, _ = s.Put(t.Context(), "ab/new", io.MultiReader(strings.NewReader("new"), funcReader(func() { panic("reader") })))
		t.Error("Put returned")
	}()
	wantAll(t, s, "ab/kept")
	wantTemp(t, dir, 0)
}

// A funcReader is empty; it calls a function before it returns io.EOF.
type funcReader func()

func (f funcReader) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

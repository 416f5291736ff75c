package keyring_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/storage/keyring"
)

// newFile creates a key file in a new directory.
func newFile(tb testing.TB) (string, *keyring.Keyring) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "keys")
	return path, openFile(tb, path)
}

func openFile(tb testing.TB, path string) *keyring.Keyring {
	tb.Helper()
	k, err := keyring.OpenFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func addKey(tb testing.TB, path string) *keyring.Keyring {
	tb.Helper()
	k, err := keyring.AddKey(path)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func write(tb testing.TB, path, text string, mode fs.FileMode) {
	tb.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// wantNames checks that the directory of a file has exactly these names.
func wantNames(tb testing.TB, path string, want ...string) {
	tb.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		tb.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		tb.Errorf("the directory has %q, want %q", got, want)
	}
}

func TestOpenFile(t *testing.T) {
	t.Parallel()
	path, k := newFile(t)
	sealed := k.Seal("secret", "row")
	text := read(t, path)
	if !strings.HasPrefix(text, "# ") || !strings.Contains(text, "back this file up") || !strings.HasSuffix(text, " # "+k.Primary()+"\n") {
		t.Errorf("the file is:\n%s", text)
	}
	wantNames(t, path, "keys")

	again := openFile(t, path)
	wantOpen(t, again, "secret", sealed, "row")
	if len(again.IDs()) != 1 || read(t, path) != text {
		t.Errorf("opened again it has %v", again)
	}
	if _, other := newFile(t); other.Primary() == k.Primary() {
		t.Error("two files have the same key")
	}
}

// create doesn't replace a file that another process has created.
func TestCreateNeverReplaces(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	before := read(t, path)
	if err := keyring.Create(path); err != nil {
		t.Error(err)
	}
	if read(t, path) != before {
		t.Error("the file was replaced")
	}
	wantNames(t, path, "keys")
}

func TestAddKey(t *testing.T) {
	t.Parallel()
	path, first := newFile(t)
	sealed := first.Seal("old", "row")
	second := addKey(t, path)
	third := addKey(t, path)
	ids := []string{third.Primary(), second.Primary(), first.Primary()}
	for label, k := range map[string]*keyring.Keyring{"returned": third, "opened": openFile(t, path)} {
		if !slices.Equal(k.IDs(), ids) {
			t.Errorf("%s: the keys are %q, want %q", label, k.IDs(), ids)
		}
		wantOpen(t, k, "old", sealed, "row")
		if id, err := keyring.KeyID(k.Seal("")); err != nil || id != ids[0] {
			t.Errorf("%s: the key %q seals, %v", label, id, err)
		}
	}
	wantNames(t, path, "keys")
	if _, err := keyring.AddKey(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	wantNames(t, path, "keys")
}

// The file is replaced, not overwritten: a process that has it open reads all of the old
// one, and one that dies leaves no partial new one.
func TestChangeReplaces(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	for _, change := range []func() (*keyring.Keyring, error){
		func() (*keyring.Keyring, error) { return keyring.AddKey(path) },
		func() (*keyring.Keyring, error) { return keyring.RemoveKeys(path, openFile(t, path).Primary()) },
	} {
		before := read(t, path)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := change(); err != nil {
			t.Error(err)
		}
		old, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil || string(old) != before || read(t, path) == before {
			t.Errorf("who had the file open reads %d bytes of %d, %v", len(old), len(before), err)
		}
	}
}

func TestRemoveKeys(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	addKey(t, path)
	ids := addKey(t, path).IDs()
	sealed := openFile(t, path).Seal("newest")
	before := read(t, path)
	for _, keep := range [][]string{nil, {"00000000"}, {ids[0], ""}, {ids[0], "00000000"}} {
		k, err := keyring.RemoveKeys(path, keep...)
		if k != nil || err == nil || len(keep) > 0 != errors.Is(err, keyring.ErrUnknownKey) {
			t.Errorf("keep %q: %v, %v", keep, k, err)
		}
		if len(keep) == 0 && !strings.Contains(fmt.Sprint(err), "no key would be left") {
			t.Errorf("keep nothing: %v", err)
		}
	}
	if read(t, path) != before {
		t.Error("a refusal changed the file")
	}
	for _, keep := range [][]string{{ids[2], ids[1], ids[1]}, {ids[2]}, {ids[2]}} {
		k, err := keyring.RemoveKeys(path, keep...)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(keep, id) })
		if !slices.Equal(k.IDs(), want) || !slices.Equal(openFile(t, path).IDs(), want) {
			t.Errorf("keep %q: the keys are %q, want %q", keep, k.IDs(), want)
		}
		wantClosed(t, k, keyring.ErrUnknownKey, sealed)
	}
	wantNames(t, path, "keys")
}

// Files left by a process that died don't disturb, and a change writes only to a new
// file.
func TestLeftoverFilesDoNotDisturb(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	victim := path + "-victim"
	write(t, victim, "untouched", 0o600)
	write(t, filepath.Join(filepath.Dir(path), ".keys.123.tmp"), "half a k", 0o644)
	first := openFile(t, path)
	for _, leave := range []func(temp string) error{
		func(temp string) error { return os.WriteFile(temp, []byte("half a key, longer than"), 0o644) },
		func(temp string) error { return os.Symlink(victim, temp) },
		func(temp string) error { return os.Link(victim, temp) },
	} {
		if err := leave(path + ".tmp"); err != nil {
			t.Fatal(err)
		}
		k := addKey(t, path)
		wantOpen(t, k, "secret", first.Seal("secret"))
		wantNames(t, path, ".keys.123.tmp", "keys", "keys-victim")
	}
	if read(t, victim) != "untouched" || len(openFile(t, path).IDs()) != 4 {
		t.Errorf("got %q and %v", read(t, victim), openFile(t, path))
	}
}

func TestChangeThatFailsLeavesTheFile(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	before := read(t, path)
	if err := os.MkdirAll(path+".tmp/in the way", 0o700); err != nil {
		t.Fatal(err)
	}
	if k, err := keyring.AddKey(path); err == nil || k != nil || read(t, path) != before {
		t.Errorf("got %v, %v", k, err)
	}
}

// No file is written that is too long to be read.
func TestLongFile(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	taken := make(map[string]bool) // with so many keys, identifiers may collide
	for b.Len() < keyring.MaxFile*19/20 {
		key := keyring.Generate()
		if !taken[key.ID] {
			taken[key.ID] = true
			fmt.Fprintf(&b, "%x\n", key.Secret[:])
		}
	}
	path := filepath.Join(t.TempDir(), "keys")
	full := b.String() + strings.Repeat("#", keyring.MaxFile-b.Len())
	write(t, path, full, 0o600)
	openFile(t, path)
	if _, err := keyring.AddKey(path); err == nil || !strings.Contains(err.Error(), "it would be longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
	if read(t, path) != full {
		t.Error("the file was changed")
	}
	wantNames(t, path, "keys")
	write(t, path, full+"#", 0o600)
	if _, err := keyring.OpenFile(path); err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

// clock is a time that changes only when it is moved.
type clock struct{ time.Time }

func (c *clock) now() time.Time            { return c.Time }
func (c *clock) move(by time.Duration)     { c.Time = c.Add(by) }
func newClock() *clock                     { return &clock{time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)} }
func unknown() string                      { return "s1.00000000.AAAA" }
func chmod(path string, mode uint32) error { return os.Chmod(path, fs.FileMode(mode)) }

// running returns the file of a running server, its ring and its clock.
func running(t *testing.T) (string, *keyring.Keyring, *clock) {
	path, k := newFile(t)
	c := newClock()
	k.SetClock(c.now)
	return path, k, c
}

// A running server opens values sealed under a key that another process has added, and
// reads the file at most once a second for that.
func TestOpenFollowsTheFile(t *testing.T) {
	t.Parallel()
	path, server, c := running(t)
	sealed := addKey(t, path).Seal("1")
	wantOpen(t, server, "1", sealed) // at once: no key was unknown before

	sealed = addKey(t, path).Seal("2")
	wantClosed(t, server, keyring.ErrUnknownKey, sealed)
	c.move(time.Second - 1)
	wantClosed(t, server, keyring.ErrUnknownKey, sealed)
	c.move(1)
	wantOpen(t, server, "2", sealed)

	c.move(time.Second)
	wantClosed(t, server, keyring.ErrUnknownKey, unknown())
	sealed = addKey(t, path).Seal("3")
	c.move(-time.Hour) // the clock is set back
	wantOpen(t, server, "3", sealed)
	if len(server.IDs()) != 4 {
		t.Errorf("the server has %v", server)
	}
}

// A running server seals under the file's first key within a second, even if it has met
// no unknown key.
func TestSealFollowsTheFile(t *testing.T) {
	t.Parallel()
	path, server, c := running(t)
	sealsUnder := func(want string) {
		t.Helper()
		if got, err := keyring.KeyID(server.Seal("x")); err != nil || got != want {
			t.Errorf("sealed under %q, %v; want %q", got, err, want)
		}
	}
	old, renewed := server.Primary(), addKey(t, path).Primary()
	c.move(time.Second - 1)
	sealsUnder(old)
	c.move(1)
	sealsUnder(renewed)

	// Opening a value under an unknown key also updates the first key, and sealing
	// doesn't delay the next read for opening.
	newest := addKey(t, path)
	wantOpen(t, server, "y", newest.Seal("y"))
	sealsUnder(newest.Primary())

	if _, err := keyring.RemoveKeys(path, renewed); err != nil {
		t.Fatal(err)
	}
	c.move(time.Second)
	sealsUnder(renewed)
	wantClosed(t, server, keyring.ErrUnknownKey, newest.Seal("z"))
}

func TestReload(t *testing.T) {
	t.Parallel()
	path, server, _ := running(t)
	for range 3 {
		want := addKey(t, path).IDs()
		if err := server.Reload(); err != nil || !slices.Equal(server.IDs(), want) {
			t.Errorf("got %q, %v; want %q", server.IDs(), err, want)
		}
	}
	if err := newRing(t, keyring.Generate()).Reload(); err != nil {
		t.Error(err)
	}
}

// If the file can't be read, the keys stay, and the error says why.
func TestUnreadableFileKeepsKeys(t *testing.T) {
	t.Parallel()
	good := keyring.Format([]keyring.Key{keyring.Generate()})
	for _, c := range []struct {
		label string
		spoil func(path string) error
		want  string
	}{
		{"open to others", func(p string) error { return chmod(p, 0o640) }, "chmod 600"},
		{"gone", os.Remove, "no such file"},
		{"malformed", func(p string) error { return os.WriteFile(p, []byte(good[1:]), 0o600) }, "in line 1"},
		{"the same key twice", func(p string) error { return os.WriteFile(p, []byte(good+good), 0o600) }, "are the same"},
		{"empty", func(p string) error { return os.Truncate(p, 0) }, "there is no key"},
	} {
		t.Run(c.label, func(t *testing.T) {
			t.Parallel()
			path, server, clock := running(t)
			sealed, before := server.Seal("secret"), read(t, path)
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			clock.move(time.Second)
			wantOpen(t, server, "secret", server.Seal("secret"))
			for range 2 { // the second time the error is remembered
				_, err := server.Open(unknown())
				if !errors.Is(err, keyring.ErrUnknownKey) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "00000000") {
					t.Errorf("got %v", err)
				}
			}
			if err := server.Reload(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("reload: %v", err)
			}
			wantOpen(t, server, "secret", sealed)
			write(t, path, before, 0o600)
			if err := server.Reload(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A ring keeps reading the same file after a change of the working directory.
func TestRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	k := openFile(t, "keys")
	want := addKey(t, "keys").IDs()
	t.Chdir(t.TempDir())
	if err := k.Reload(); err != nil || !slices.Equal(k.IDs(), want) {
		t.Errorf("got %v, %v", k, err)
	}
}

package keyring_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/storage/keyring"
)

// open opens a key file, which may not exist yet.
func open(tb testing.TB, path string) *keyring.Keyring {
	tb.Helper()
	k, err := keyring.OpenFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// Processes that create a file at once get the same key, and leave nothing else.
func TestOpenFileCreates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.keys")
	var wg sync.WaitGroup
	rings := make([]*keyring.Keyring, 8)
	for i := range rings {
		wg.Go(func() { rings[i], _ = keyring.OpenFile(path) })
	}
	wg.Wait()
	for _, k := range rings {
		if k == nil || k.Primary() != rings[0].Primary() || k.Primary() == "" {
			t.Errorf("got the keys of %v", rings)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// A running process opens what was sealed under a key that was added since, and seals under it.
func TestKeyringFollowsItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.keys")
	running := open(t, path)
	old := running.Seal("secret", "row")
	fresh, err := keyring.AddKey(path)
	if err != nil || len(fresh.IDs()) != 2 || fresh.IDs()[1] != running.Primary() {
		t.Fatalf("%q, %v", fresh.IDs(), err)
	}
	wantOpen(t, fresh, "secret", old, "row")
	wantOpen(t, running, "secret", fresh.Seal("secret", "row"), "row")
	if again, err := keyring.AddKey(path); err != nil || keyringOf(t, running.Seal("x")) != again.Primary() {
		t.Errorf("it seals under %s, %v", running.Primary(), err)
	}
	if _, err := keyring.RemoveKeys(path, "00000000"); !errors.Is(err, keyring.ErrUnknownKey) {
		t.Errorf("an unknown key is kept: %v", err)
	}
	left, err := keyring.RemoveKeys(path, running.Primary())
	if err != nil || len(left.IDs()) != 1 {
		t.Fatal(left.IDs(), err)
	}
	wantClosed(t, left, keyring.ErrUnknownKey, old, "row")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantOpen(t, running, "x", running.Seal("x")) // with the keys that it has
}

func keyringOf(tb testing.TB, sealed string) string {
	tb.Helper()
	id, err := keyring.KeyID(sealed)
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// Files that others may use, that aren't files or that have no keys are refused; errors show none of their content.
func TestOpenFileRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "secret.keys")
	open(t, path)
	for text, mode := range map[string]os.FileMode{"": 0o600, "hunter2": 0o600, strings.Repeat("ab", 32): 0o644} {
		bad := filepath.Join(dir, "bad")
		if err := errors.Join(os.RemoveAll(bad), os.WriteFile(bad, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
		if k, err := keyring.OpenFile(bad); k != nil || err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q, %v: %v, %v", text, mode, k, err)
		}
		if _, err := keyring.AddKey(bad); err == nil {
			t.Errorf("%q, %v: a key was added", text, mode)
		}
	}
	if k, err := keyring.OpenFile(dir); k != nil || err == nil {
		t.Errorf("a directory: %v, %v", k, err)
	}
	// An interrupted or running change excludes others, and leaves the keys.
	if err := os.WriteFile(path+".tmp", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.AddKey(path); err == nil || !strings.Contains(err.Error(), "remove") || len(open(t, path).IDs()) != 1 {
		t.Errorf("during another change: %v", err)
	}
}

// A link to a key file stays a link when a key is added.
func TestAddKeyFollowsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	open(t, target)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if k, err := keyring.AddKey(link); err != nil || len(k.IDs()) != 2 || len(open(t, target).IDs()) != 2 {
		t.Errorf("%v, %v", k, err)
	}
}

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package keyring_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/formsvc/toolkit/storage/keyring"
)

// helperEnv makes the test binary run a helper instead of the tests: "open" or "add", the
// number of times, the umask in octal, and a path.
const helperEnv = "KEYRING_TEST_HELPER"

func TestMain(m *testing.M) {
	if work := os.Getenv(helperEnv); work != "" {
		if err := help(strings.SplitN(work, " ", 4)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// help waits until its standard input is closed, so that several helpers start at once,
// and prints the first key after each call.
func help(work []string) error {
	times, err := strconv.Atoi(work[1])
	if err != nil {
		return err
	}
	umask, err := strconv.ParseUint(work[2], 8, 32)
	if err != nil {
		return err
	}
	syscall.Umask(int(umask))
	do := map[string]func(string) (*keyring.Keyring, error){"open": keyring.OpenFile, "add": keyring.AddKey}[work[0]]
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for range times {
		k, err := do(work[3])
		if err != nil {
			return err
		}
		fmt.Println(k.Primary())
	}
	return nil
}

// A helper is a process that works on a key file.
type helper struct {
	cmd  *exec.Cmd
	in   io.Closer
	out  *bufio.Scanner
	fail *strings.Builder
}

func newHelper(t *testing.T, work string, times int, umask fs.FileMode, path string) *helper {
	t.Helper()
	h := &helper{cmd: exec.CommandContext(t.Context(), os.Args[0]), fail: new(strings.Builder)}
	// With the race detector each process would sleep for a second at its end.
	h.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", fmt.Sprintf("%s=%s %d %o %s", helperEnv, work, times, umask, path))
	h.cmd.Stderr = h.fail
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.in, h.out = in, bufio.NewScanner(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

// finish starts a helper's work and returns what it prints.
func (h *helper) finish(t *testing.T) []string {
	t.Helper()
	_ = h.in.Close()
	var ids []string
	for h.out.Scan() {
		ids = append(ids, h.out.Text())
	}
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("a helper failed: %v: %s", err, h.fail)
	}
	return ids
}

// together has goroutines and processes do the same work at once and returns the first
// keys that they saw.
func together(t *testing.T, path, work string, times int) []string {
	t.Helper()
	do := map[string]func(string) (*keyring.Keyring, error){"open": keyring.OpenFile, "add": keyring.AddKey}[work]
	var helpers []*helper
	for range 4 {
		helpers = append(helpers, newHelper(t, work, times, 0o022, path))
	}
	var mu sync.Mutex
	var ids []string
	var wg sync.WaitGroup
	for _, h := range helpers {
		wg.Go(func() {
			got := h.finish(t)
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, got...)
		})
		wg.Go(func() {
			for range times {
				k, err := do(path)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				ids = append(ids, k.Primary())
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ids
}

func TestConcurrentCreates(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := filepath.Join(t.TempDir(), "keys")
		ids := together(t, path, "open", 1)
		if len(ids) != 8 || len(slices.Compact(ids)) != 1 || ids[0] != openFile(t, path).Primary() {
			t.Errorf("eight that start together have the keys %q", ids)
		}
		wantNames(t, path, "keys")
	}
}

func TestConcurrentAdds(t *testing.T) {
	t.Parallel()
	path, first := newFile(t)
	ids := together(t, path, "add", 5)
	got := openFile(t, path).IDs()
	if len(ids) != 40 || len(got) != 41 || got[40] != first.Primary() {
		t.Errorf("%d keys were added to one, and there are %d", len(ids), len(got))
	}
	for _, id := range ids {
		if !slices.Contains(got, id) {
			t.Errorf("the key %s is not in the file", id)
		}
	}
	wantNames(t, path, "keys")
}

// A process killed while it adds keys leaves a complete file, with every key it has
// reported. Others can still add keys.
func TestKilled(t *testing.T) {
	t.Parallel()
	path, first := newFile(t)
	told := []string{first.Primary()}
	for round := range 10 {
		h := newHelper(t, "add", 1_000, 0o022, path)
		_ = h.in.Close()
		for range 1 + round%3 {
			if !h.out.Scan() {
				t.Fatalf("the helper ended: %s", h.fail)
			}
			told = append(told, h.out.Text())
		}
		if err := h.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for h.out.Scan() {
			told = append(told, h.out.Text())
		}
		_ = h.cmd.Wait() // it was killed
		told = append(told, addKey(t, path).Primary())
		ids := openFile(t, path).IDs()
		for _, id := range told {
			if !slices.Contains(ids, id) {
				t.Errorf("round %d: the key %s is lost", round, id)
			}
		}
	}
	wantNames(t, path, "keys")
}

// Only the owner can use the file, whatever the umask, and adding a key keeps its mode.
func TestFileStaysPrivate(t *testing.T) {
	t.Parallel()
	for _, umask := range []fs.FileMode{0, 0o022, 0o077, 0o177, 0o777} {
		path := filepath.Join(t.TempDir(), "keys")
		newHelper(t, "open", 1, umask, path).finish(t)
		for _, mode := range []fs.FileMode{0o600, 0o400, 0o700} {
			if mode != 0o600 { // as OpenFile creates it
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			wantMode(t, path, mode)
			newHelper(t, "add", 1, umask, path).finish(t)
			wantMode(t, path, mode)
		}
		if n := len(openFile(t, path).IDs()); n != 4 {
			t.Errorf("umask %o: %d keys", umask, n)
		}
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode() != want {
		t.Errorf("got %v, %v; want %v", info.Mode(), err, want)
	}
}

// If root adds a key, the owner of the file can still read it.
func TestAddKeyKeepsOwner(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 { // only root can change a file's owner
		uid, gid = 12_345, 23_456
	}
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
	addKey(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != uid || int(s.Gid) != gid {
		t.Errorf("the file belongs to %+v, want %d:%d", info.Sys(), uid, gid)
	}
}

// A symbolic link still leads to the file.
func TestSymlink(t *testing.T) {
	t.Parallel()
	path, first := newFile(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if k := openFile(t, link); k.Primary() != first.Primary() {
		t.Errorf("the link leads to %v", k)
	}
	want := addKey(t, link).IDs()
	if got := openFile(t, path).IDs(); !slices.Equal(got, want) || len(got) != 2 {
		t.Errorf("the file has %q, want %q", got, want)
	}
	wantNames(t, path, "keys")
	wantNames(t, link, "link")
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is now %v, %v", info.Mode(), err)
	}
}

func TestOpenFileRefuses(t *testing.T) {
	t.Parallel()
	good := keyring.Format([]keyring.Key{keyring.Generate()})
	file := func(text string, mode fs.FileMode) func(*testing.T, string) {
		return func(t *testing.T, path string) { write(t, path, text, mode) }
	}
	link := func(to string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		label string
		make  func(t *testing.T, path string)
		want  string
	}{
		{"read by the group", file(good, 0o640), "(mode 0640)"},
		{"written by the group", file(good, 0o620), "(mode 0620)"},
		{"run by the group", file(good, 0o610), "(mode 0610)"},
		{"read by all", file(good, 0o604), "chmod 600"},
		{"written by all", file(good, 0o602), "(mode 0602)"},
		{"run by all", file(good, 0o601), "(mode 0601)"},
		{"empty", file("", 0o600), "there is no key"},
		{"comments only", file("# nothing\n", 0o600), "there is no key"},
		{"cut short", file(good[:len(good)-20], 0o600), "key 1, in line 7"},
		{"the same key twice", file(good+good, 0o600), "keys 1 and 2 are the same"},
		{"zeros", file(strings.Repeat("0", 64), 0o600), "key 1 is all zeros"},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "a directory"},
		{"named pipe", func(t *testing.T, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"link to a device", link(os.DevNull), "not a regular file"},
		{"link to itself", link("keys"), "too many"},
		{"link to nothing", link("missing"), ""},
	} {
		t.Run(c.label, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "keys")
			c.make(t, path)
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			for label, do := range map[string]func(string) (*keyring.Keyring, error){"open": keyring.OpenFile, "add": keyring.AddKey} {
				k, err := do(path)
				if k != nil || err == nil {
					t.Fatalf("%s: got %v, %v", label, k, err)
				}
				text := err.Error()
				if !strings.HasPrefix(text, "keyring: ") || !strings.Contains(text, c.want) {
					t.Errorf("%s: got %v, want %q in it", label, err, c.want)
				}
				if !strings.Contains(text, filepath.Dir(path)) && !strings.Contains(text, os.DevNull) {
					t.Errorf("%s: %v does not name the file", label, err)
				}
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
				t.Errorf("it was changed: %v, %v", after, err)
			}
			wantNames(t, path, "keys")
		})
	}
	if k, err := keyring.OpenFile(filepath.Join(t.TempDir(), "missing", "keys")); k != nil || err == nil {
		t.Errorf("in a directory that does not exist: %v, %v", k, err)
	}
	path := filepath.Join(t.TempDir(), "keys")
	link("missing")(t, path)
	if _, err := keyring.OpenFile(path); err == nil || !strings.Contains(err.Error(), "a symbolic link to a file that does not exist") {
		t.Errorf("a link to nothing: %v", err)
	}
}

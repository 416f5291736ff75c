//go:build long

package fileblob_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
)

// System calls fail. The first fsync is for the name of .tmp, the second for the file, and the next
// ones for the names of ab and the blob.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault string
		want  int
	}{
		"fsync of .tmp":      {"fsync:error=EIO:when=1", unavailable},
		"fsync of the file":  {"fsync:error=EIO:when=2", unavailable},
		"fsync of the dir":   {"fsync:error=EIO:when=3", unavailable},
		"fsync of the name":  {"fsync:error=EIO:when=4", unavailable},
		"fsync without room": {"fsync:error=ENOSPC:when=2", noSpace},
		"quota":              {"write:error=EDQUOT:when=5+", noSpace},
		"link":               {"linkat:error=EIO", unavailable},
		"write":              {"write:error=EIO:when=5", unavailable},
		"link without room":  {"linkat:error=ENOSPC", noSpace},
		"stale":              {"linkat:error=ESTALE", unavailable},
		"cross-device":       {"linkat:error=EXDEV", unavailable},
		"no hard links":      {"linkat:error=EPERM", 0},
		"no links at all":    {"linkat:error=ENOSYS", 0},
		"no dir fsync":       {"fsync:error=EINVAL:when=3+", 0},
		"no times":           {"utimensat:error=EPERM", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "blobs")
			must(t, os.Mkdir(dir, 0o700))
			inject(t, "put", dir, c.fault, c.want)
			s := open(t, dir)
			if c.want == 0 {
				wantAll(t, s, "ab/helped")
			} else {
				wantAll(t, s)
			}
			wantTemp(t, dir, 0)
		})
	}
}

// inject runs a helper with failing system calls.
func inject(t *testing.T, kind, dir, fault string, want int) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	call, _, _ := strings.Cut(fault, ":")
	cmd := helper(t.Context(), kind, dir, strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", "inject="+fault)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "ptrace") {
		t.Skipf("strace may not trace: %s", out)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("%s with %s ends with %d, want %d: %s", kind, fault, got, want, out)
	}
}

// Without hard links, a taken key also stays unchanged, and one of several concurrent Puts
// succeeds.
func TestWithoutHardLinks(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	put(t, s, "ab/helped", "first")
	inject(t, "put", dir, "linkat:error=EPERM", taken)
	wantBlob(t, s, "ab/helped", "first")
	must(t, os.Remove(filepath.Join(dir, "ab/helped")))
	inject(t, "race", dir, "linkat:error=EOPNOTSUPP", 0)
	wantTemp(t, dir, 0)
}

// An unreadable directory is never left out of a list, since callers treat unlisted blobs as
// missing.
func TestListFaults(t *testing.T) {
	t.Parallel()
	_, dir := newStore(t)
	inject(t, "list", dir, "getdents64:error=EIO:when=100", 0)
	for when := 1; when <= 4; when++ { // twice for the directory itself, twice for ab
		inject(t, "list", dir, fmt.Sprintf("getdents64:error=EIO:when=%d", when), unavailable)
	}
	inject(t, "list", dir, "newfstatat:error=EACCES:when=3+", unavailable)
}

// A full disk refuses new blobs and keeps the others; an unmounted one doesn't look empty.
func TestFullAndUnmountedDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount(t, dir, "size=4m")
	s := open(t, dir)
	put(t, s, "ab/kept", "kept")
	for name, r := range map[string]io.Reader{
		"one":  bytes.NewReader(make([]byte, 6<<20)),
		"more": io.MultiReader(strings.NewReader("more"), bytes.NewReader(make([]byte, 5<<20))),
	} {
		_, err := s.Put(t.Context(), "ab/"+name, r)
		wantError(t, "Put of more than there is room for", err, blobstore.ErrNoSpace)
		wantError(t, "Put of more than there is room for", err, syscall.ENOSPC)
	}
	wantAll(t, s, "ab/kept")
	wantTemp(t, dir, 0)

	// Concurrent Puts share the space; failing ones free theirs.
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, err := s.Put(t.Context(), fmt.Sprintf("cd/%d", i), bytes.NewReader(make([]byte, 1<<20)))
			if err != nil {
				wantError(t, "Put of one of many", err, blobstore.ErrNoSpace)
			}
		})
	}
	all.Wait()
	wantTemp(t, dir, 0)
	wantBlob(t, s, "ab/kept", "kept")
	for info, err := range s.List(t.Context(), "cd/") {
		must(t, err)
		if info.Size != 1<<20 {
			t.Errorf("%s has %d bytes", info.Key, info.Size)
		}
		must(t, s.Delete(t.Context(), info.Key))
	}
	// Not all of it: a process that another test is starting may hold deleted files open until it
	// executes its program.
	put(t, s, "ab/large", strings.Repeat("x", 2<<20))
	wantBlob(t, s, "ab/kept", "kept")
	must(t, s.Delete(t.Context(), "ab/large"))

	// Unmount it, even though open files keep it alive.
	must(t, syscall.Unmount(dir, syscall.MNT_DETACH))
	_, err := s.Stat(t.Context(), "ab/none")
	wantAway(t, "Stat", err)
	_, err = s.Put(t.Context(), "ab/new", strings.NewReader("new"))
	wantAway(t, "Put", err)
	wantAway(t, "List", list(t, s))
}

// mount mounts a file system in memory, or skips the test.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("can't mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// A named pipe isn't a blob; opening it would block forever.
func TestNamedPipeIsNotABlob(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	must(t, syscall.Mkfifo(filepath.Join(dir, "ab/pipe"), 0o600))
	for name, err := range every(t, s, "ab/pipe") {
		wantError(t, name, err, fs.ErrNotExist)
	}
	wantAll(t, s, "ab/kept")
}

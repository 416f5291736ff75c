package torture_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/service"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
)

// missing skips a test that lacks a requirement. In CI it fails the test.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s, and in CI no fault may be skipped", what)
	}
	t.Skipf("SKIPPED: %s", what)
}

// underStrace returns the command that runs a node in which one system call fails or kills it.
func underStrace(t testing.TB, injection, log string) []string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		missing(t, "no strace here")
	}
	if out, err := exec.Command(path, "-f", "-qq", "-o", os.DevNull, "/bin/true").CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("strace may not trace here: %v, %s", err, bytes.TrimSpace(out)))
	}
	call, _, _ := strings.Cut(injection, ":")
	command := []string{path, "-f", "-qq", "-e", "signal=none", "-o", log, "-e", "trace=" + call, "-e", "inject=" + injection}
	if strings.Contains(injection, "error=") {
		command = append(command, "--seccomp-bpf") // much faster; strace 6.1 then sends signals at the first call only
	}
	return command
}

// afflict runs the node for a second, or until it ends, while one of the named system calls fails or kills it: a frequent
// one at a random time, a rare one at once. It returns the call, and whether it was reached.
func afflict(t *testing.T, w *world.World, number int, rare, often []string) (injection string, reached bool) {
	t.Helper()
	calls := append(slices.Clone(rare), often...)
	injection = calls[number%len(calls)]
	nth := 1 + rand.IntN(3)
	if slices.Contains(often, injection) {
		nth += rand.IntN(1 << rand.IntN(7))
	}
	log := filepath.Join(t.TempDir(), "strace")
	setup := w.Setup
	setup.Under = underStrace(t, fmt.Sprintf("%s:when=%d", injection, nth), log)
	p := service.Launch(t, &setup)
	defer w.Lose(0, p)
	if p.Await() {
		w.Adopt(0, p)
	}
	select {
	case <-p.Done(): // killed, or exited because it must not continue after a failed write
		reached = strings.Contains(injection, "KILL")
	case <-time.After(time.Second): // the load is too small for that many calls
	}
	trace, err := os.ReadFile(log)
	return injection, reached || err == nil && bytes.Contains(trace, []byte("(INJECTED)"))
}

// afflicted runs rounds with failing system calls.
func afflicted(t *testing.T, few int, unit string, rare, often []string) {
	t.Helper()
	w := world.New(t, world.Options{Program: program(t), DSN: sqliteDSN(t)})
	began, r := time.Now(), newRounds(few)
	l := w.Load(nil)
	reached := make(map[string]int)
	for r.nextUntil(len(reached) > 0) {
		if injection, ok := afflict(t, w, r.done, rare, often); ok {
			reached[injection]++
		}
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, unit, began, &s)
	t.Logf("reached: %v", reached)
	if len(reached) == 0 {
		t.Error("INVALID: no system call was reached")
	}
}

// The node is killed just before a system call that writes. So nodes start from every state of the files between two calls.
func TestKillAtSystemCall(t *testing.T) {
	t.Parallel()
	afflicted(t, 8, "kills at system calls",
		[]string{"linkat:signal=KILL", "unlinkat:signal=KILL", "ftruncate:signal=KILL", "mkdirat:signal=KILL"},
		[]string{"fsync:signal=KILL", "pwrite64:signal=KILL", "write:signal=KILL"})
}

// A write or flush fails once, at any moment. Everything acknowledged with 2xx is stored, even after a crash.
func TestDiskErrors(t *testing.T) {
	t.Parallel()
	afflicted(t, 6, "failing system calls", []string{"linkat:error=EIO", "unlinkat:error=EIO"},
		[]string{"fsync:error=EIO", "pwrite64:error=EIO", "pwrite64:error=ENOSPC", "write:error=ENOSPC"})
}

// The disk is full for a while, repeatedly. Writes are rejected, and accepted again when there is space, without a restart.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); err != nil {
		missing(t, fmt.Sprintf("a small file system can't be mounted: %v", err))
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	data := filepath.Join(dir, "data")
	w := world.New(t, world.Options{Program: program(t), DSN: "sqlite:" + filepath.Join(dir, "formsvc.db"), Data: data})
	began, r := time.Now(), newRounds(4)
	w.StartAll()
	l := w.Load(func(o *load.Options) { o.Rate = 300 })
	refused := 0
	for r.nextUntil(refused > 0) {
		time.Sleep(rand.N(200 * time.Millisecond))
		before := l.Result()
		filler := fill(t, dir)
		time.Sleep(200*time.Millisecond + rand.N(300*time.Millisecond))
		full := l.Result()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		refused += full.Failed - before.Failed
		waitFor(t, "writes are taken again", func() bool { return l.Acked() > full.Acked+20 })
	}
	w.Stop(l)
	s := w.Check()
	report(t, r, "full disks", began, &s)
	if refused == 0 {
		t.Error("INVALID: no write was refused")
	}
}

// fill fills the disk of dir and returns the file that takes the space.
func fill(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 1<<20); ; {
		if _, err := f.Write(block); err != nil {
			if len(block) == 4096 {
				return path // full to the last page
			}
			block = block[:4096]
		}
	}
}

// waitFor polls done until it returns true. Only a failing test takes long.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}

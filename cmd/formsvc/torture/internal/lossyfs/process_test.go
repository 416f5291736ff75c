//go:build linux

package lossyfs_test

import (
	"bufio"
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
)

// childEnv makes the test binary do one thing instead of the tests. Its value is the name of a task and its arguments,
// separated by spaces.
const childEnv = "LOSSYFS_TEST_CHILD"

// killLimit limits the lifetime of a child that is to be killed.
const killLimit = time.Minute

func TestMain(m *testing.M) {
	if work := strings.Fields(os.Getenv(childEnv)); len(work) > 1 {
		if err := help(work[0], work[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func help(kind string, args []string) error {
	switch kind {
	case "rows":
		return writeRows(args[0], args[1])
	case "check":
		return checkRows(args[0], args[1])
	case "responses":
		return writeResponses(args[0])
	case "check-responses":
		return checkResponses(args[0], args[1])
	case "blobs":
		return putBlobs(args[0], args[1])
	case "map":
		return mapShared(args[0])
	case "sync":
		return syncTwice(args[0])
	}
	return fmt.Errorf("no such work: %s", kind)
}

func child(t testing.TB, work ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	// The race detector would make each process sleep a second before it ends.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", childEnv+"="+strings.Join(work, " "))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run runs a child to its end and returns its output.
func run(t testing.TB, work ...string) (string, error) {
	t.Helper()
	out, err := child(t, work...).CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}

// killAfter starts a child, kills it at some time after this many lines of output, and returns its complete lines.
func killAfter(t testing.TB, lines int, within time.Duration, work ...string) []string {
	t.Helper()
	now := make(chan struct{})
	return killed(t, now, func(said int) {
		if said == lines {
			time.AfterFunc(rand.N(within+1), func() { close(now) })
		}
	}, work...)
}

// killAt starts a child, kills it when a channel is closed, and returns its complete lines.
func killAt(t testing.TB, now <-chan struct{}, work ...string) []string {
	t.Helper()
	return killed(t, now, func(int) {}, work...)
}

func killed(t testing.TB, now <-chan struct{}, said func(lines int), work ...string) []string {
	t.Helper()
	cmd := child(t, work...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		select {
		case <-now:
			_ = cmd.Process.Kill()
		case <-time.After(killLimit):
			_ = cmd.Process.Signal(syscall.SIGQUIT) // prints its stacks
		case <-ended:
		}
	}()
	var all []string
	said(0)
	for out := bufio.NewScanner(pipe); out.Scan(); said(len(all)) {
		all = append(all, out.Text())
	}
	close(ended)
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed when it should be: %v, %q", cmd.ProcessState, all)
	}
	return all
}

// content returns bytes that are unique to a number.
func content(number uint64, most int) []byte {
	random := rand.NewChaCha8([32]byte{byte(number), byte(number >> 8), byte(number >> 16), byte(number >> 24)})
	b := make([]byte, 1+random.Uint64()%uint64(most))
	_, _ = random.Read(b)
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fsync makes files or directories durable.
func fsync(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		f, err := os.Open(path)
		must(t, err)
		must(t, f.Sync())
		must(t, f.Close())
	}
}

// durableDir makes a directory whose name is durable.
func durableDir(t testing.TB, above, name string) string {
	t.Helper()
	dir := filepath.Join(above, name)
	must(t, os.Mkdir(dir, 0o700))
	fsync(t, above)
	return dir
}

// durableFile makes a file whose name and bytes are durable.
func durableFile(t testing.TB, path string, b []byte) {
	t.Helper()
	must(t, os.WriteFile(path, b, 0o600))
	fsync(t, path, filepath.Dir(path))
}

// state describes the content of a directory: names, and the bytes if they are few.
func state(t testing.TB, dir string) string {
	t.Helper()
	var all []string
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if e.IsDir() {
			all = append(all, name+"/")
			return nil
		}
		b, err := os.ReadFile(path)
		all = append(all, name+"="+string(b))
		return err
	}))
	slices.Sort(all)
	return strings.Join(all, " ")
}

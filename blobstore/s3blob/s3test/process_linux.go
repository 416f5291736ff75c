package s3test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// attributes makes the process end together with ours.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// suspend stops the process and waits until all its threads have stopped, since the signal returns
// earlier.
func suspend(t testing.TB, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(startTimeout); !stopped(t, p.Pid); {
		if time.Now().After(deadline) {
			t.Fatal("the S3 server does not stop")
		}
		time.Sleep(time.Millisecond)
	}
}

// stopped reports whether no thread of a process runs.
func stopped(t testing.TB, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("the threads of the S3 server: %v", err)
	}
	for _, thread := range threads {
		b, err := os.ReadFile(thread) //nolint:gosec // a file of the kernel
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended
		}
		// The state follows the name, which is in parentheses.
		if end := bytes.LastIndexByte(b, ')'); err != nil || end < 0 || !bytes.HasPrefix(b[end:], []byte(") T")) {
			return false
		}
	}
	return true
}

func resume(t testing.TB, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

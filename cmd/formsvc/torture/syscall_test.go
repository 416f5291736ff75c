package torture_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The node is killed just before a system call that writes. So nodes start from every state of the files between two calls.
func TestKillAtSystemCall(t *testing.T) {
	failing(t, "signal=KILL", []string{"fsync", "linkat", "pwrite64", "unlinkat", "write", "ftruncate", "mkdirat"})
}

// A write or flush fails once, at any moment. Everything acknowledged is stored, even after a crash.
func TestDiskErrors(t *testing.T) {
	t.Run("EIO", func(t *testing.T) { failing(t, "error=EIO", []string{"fsync", "pwrite64", "linkat", "unlinkat"}) })
	t.Run("ENOSPC", func(t *testing.T) { failing(t, "error=ENOSPC", []string{"pwrite64", "write", "linkat"}) })
}

// failing runs a node each round for a second, or until it ends. In the n-th of one system call, a fault happens.
func failing(t *testing.T, fault string, calls []string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		missing(t, "no strace here")
	}
	if out, err := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "/bin/true").CombinedOutput(); err != nil {
		missing(t, "strace may not trace here: %v, %s", err, bytes.TrimSpace(out))
	}
	w := newWorld(t, 1, setup{dsn: sqliteDSN(t)})
	w.files = true
	w.begin(400)
	reached := make(map[string]int)
	for n := range rounds(len(calls)) {
		call := calls[n%len(calls)]
		nth := 1 + rand.IntN(3)
		if call == "fsync" || strings.Contains(call, "write") { // frequent ones fail at a random time, rare ones at once
			nth += rand.IntN(1 << rand.IntN(7))
		}
		log := filepath.Join(t.TempDir(), "strace")
		w.under = []string{strace, "-f", "-qq", "-e", "signal=none", "-o", log, "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, fault, nth)}
		if fault != "signal=KILL" {
			w.under = append(w.under, "--seccomp-bpf") // much faster; strace 6.1 then sends signals at the first call only
		}
		p := w.launch(t)
		if p.await() {
			w.put(0, p)
		}
		select {
		case <-p.done: // killed, or exited because it must not continue after a failed write
		case <-time.After(time.Second): // the load is too small for that many calls
		}
		if trace, err := os.ReadFile(log); err == nil && bytes.Contains(trace, []byte("(INJECTED)")) || p.ended() {
			reached[call]++
		}
		p.kill()
		w.put(0, nil)
	}
	w.under = nil
	w.check()
	t.Logf("reached: %v", reached)
	if len(reached) == 0 {
		t.Error("INVALID: no system call was reached")
	}
}

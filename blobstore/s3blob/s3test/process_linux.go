package s3test

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// attributes makes the process end together with ours.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// suspend stops the process and waits until all its threads have stopped, since the signal returns
// earlier.
func suspend(t testing.TB, p *os.Process) {
	t.Helper()
	err := p.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	for again := err == nil; again; again = errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
	}
	if err != nil || !status.Stopped() {
		t.Fatalf("the S3 server does not stop: %v", err)
	}
}

func resume(t testing.TB, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

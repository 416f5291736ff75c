//go:build !linux

package s3test

import (
	"os"
	"syscall"
	"testing"
)

func attributes() *syscall.SysProcAttr { return nil }

func suspend(t testing.TB, _ *os.Process) {
	t.Helper()
	t.Skip("SKIPPED: a server is suspended on Linux only")
}

func resume(testing.TB, *os.Process) {}

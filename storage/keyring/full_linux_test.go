package keyring_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/formsvc/toolkit/storage/keyring"
)

// A key file that couldn't be written whole never gets its name. The test isn't parallel: the limit holds for the process.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret.keys")
	full := func(call func(path string) (*keyring.Keyring, error), path string) {
		t.Helper()
		var limit syscall.Rlimit
		small := func(max uint64) error {
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: max, Max: limit.Max})
		}
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil || small(100) != nil {
			t.Skip("no limit")
		}
		_, err := call(path)
		if restored := small(limit.Cur); err == nil || restored != nil {
			t.Errorf("error %v, and %v", err, restored)
		}
	}
	full(keyring.OpenFile, path)
	if left, err := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files %v, %v", left, err)
	}
	id := open(t, path).Primary()
	full(keyring.AddKey, path)
	if open(t, path).Primary() != id {
		t.Error("the file has another key")
	}
}

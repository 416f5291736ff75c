package fileblob

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
)

// A Put whose name can't be made durable leaves no blob, at each of its flushes of a directory.
func TestFailedFlushLeavesNoBlob(t *testing.T) {
	for failing := range 2 { // of the new directory's name, and of the blob's
		s, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		s.flush = func(dir *os.File, err error) error {
			if n++; n == failing+1 {
				return errors.Join(err, dir.Close(), syscall.EIO)
			}
			return syncDir(dir, err)
		}
		if _, err := s.Put(t.Context(), "ab/blob", strings.NewReader("x")); !errors.Is(err, blobstore.ErrUnavailable) {
			t.Errorf("flush %d: %v", failing, err)
		}
		if _, err := s.Stat(t.Context(), "ab/blob"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("flush %d fails, and the blob is there: %v", failing, err)
		}
		if _, err := s.Put(t.Context(), "ab/blob", strings.NewReader("x")); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

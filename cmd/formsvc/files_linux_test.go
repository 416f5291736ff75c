//go:build long

package main_test

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
)

// A full disk is reported as such. Nothing half-written remains, and requests that need no space still work.
func TestFilesDiskFull(t *testing.T) {
	onEachDatabase(t, diskFull)
}

func diskFull(t *testing.T, dsn string) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=8m"); err != nil {
		missing(t, fmt.Sprintf("a small file system can't be mounted: %v", err))
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	dir := filepath.Join(mount, "files")
	w := &filing{dsn: dsn, place: &place{flags: []string{"--blobs", "file:" + dir}, dir: dir}}
	w.serve(t)
	content := bytesOf(1, 5_000_000)
	before := w.upload(t, "before", content)
	// There is space for 3.3 MB. The rest of the body is so short that the server reads it before it responds.
	a, err := w.send(t.Context(), "during", bytes.NewReader(content[:3_500_000]), 3_500_000)
	if err != nil || a.status != http.StatusInsufficientStorage {
		t.Errorf("upload: status %d, %v\n%s", a.status, err, a.body)
	}
	if blobs, left := w.stored(t); len(blobs) != 1 || len(left) != 0 || len(w.listed(t)) != 1 {
		t.Errorf("stored %q and %q", blobs, left)
	}
	w.submit(t, w.campaign(t, "meanwhile"), "meanwhile")
	w.has(t, before.UUID, content)
	w.has(t, w.upload(t, "after", content[:2_000_000]).UUID, content[:2_000_000])
}

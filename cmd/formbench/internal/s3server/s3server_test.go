package s3server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStartReportsOutputOfFailedServer(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "versitygw")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho out of order\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), program, t.TempDir()); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("got %v", err)
	}
}

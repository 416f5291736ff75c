package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKept makes sure that what was measured before something failed is reported, of
// the part that failed too.
func TestKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "out.json")
	var out, log bytes.Buffer
	status := run(t.Context(), []string{
		"-duration", "100ms", "-warmup", "10ms", "-rounds", "1", "-stores", "sqlite", "-conns", "1", "-systems", "ceiling", "-only", "create,peers-create",
		"-peer-conns", "1", "-peers", "/bin/false", "-dir", t.TempDir(), "-json", file,
	}, streams{nil, &out, &log})
	if status != 1 || !strings.Contains(out.String(), "FAILED: peers-create") {
		t.Errorf("exit status %d\n%s\n%s", status, &out, &log)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 1 || len(r.Peers.Requests) != 2 || !strings.Contains(r.Error, "PocketBase") {
		t.Errorf("got %s", text)
	}
}

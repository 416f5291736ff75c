//go:build long

package main_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Beside a running server, an export has all data of a person, and the audit trail reports it without the address.
func TestPersonExport(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		e := newErasing(t, dsn)
		out := filepath.Join(t.TempDir(), "eve.zip")
		done := e.run(t, "person", "export", "--email", strings.ToUpper(eveEmail), "--out", out)
		if want := (receipt{Responses: 1, Files: 1, Signatures: 1, Events: 5}); done.sum() != want || done.FinishedAt == "" {
			t.Errorf("the receipt: %+v, want %+v", done, want)
		}
		if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		texts := unzip(t, out)
		for name, want := range map[string]string{
			"responses.ndjson": eveAnswer, "comments.ndjson": "Called " + eveEmail, "signatures.ndjson": eveName, "files.ndjson": "cv.pdf",
			"events.ndjson": "file.uploaded", "receipt.json": done.Receipt,
		} {
			if !strings.Contains(texts[name], want) {
				t.Errorf("%s has no %q: %s", name, want, texts[name])
			}
		}
		content := ""
		for name, text := range texts {
			if strings.HasPrefix(name, "files/") {
				content = text
			}
		}
		if !bytes.Equal([]byte(content), bytesOf(3, 100_000)) {
			t.Errorf("the file has %d other bytes", len(content))
		}
		trail := e.manage(t, "audit", "list", "--json").out
		if strings.Count(trail, done.Receipt) != 2 || !strings.Contains(trail, "export.done") || strings.Contains(strings.ToLower(trail), strings.ToLower(eveEmail)) {
			t.Errorf("the audit trail is %s", trail)
		}
		if again := e.manage(t, "person", "export", "--email", eveEmail, "--out", out); again.status != 2 || !strings.Contains(again.err, "already exists") {
			t.Errorf("over an archive that exists: %+v", again)
		}
		nobody := filepath.Join(t.TempDir(), "nobody.zip")
		if got := e.manage(t, "person", "export", "--email", "nobody@example.com", "--out", nobody); got.status != 0 || !strings.Contains(got.out, "responses   0\n") {
			t.Errorf("of nobody: %+v", got)
		}
		if got := e.manage(t, "person", "export", "--email", "nonsense", "--out", nobody+"2"); got.status != 1 || !strings.Contains(got.err, "/email") {
			t.Errorf("of no address: %+v", got)
		}
		if _, err := os.Stat(nobody + "2"); err == nil {
			t.Error("a failed export leaves its file")
		}
	})
}

// unzip returns the texts of the files of an archive by their names.
func unzip(t *testing.T, path string) map[string]string {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	texts := make(map[string]string)
	for _, f := range r.File {
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		texts[f.Name] = string(text)
	}
	return texts
}

package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/storage/finding"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// Diagnose finds every kind of problem of a file, with advice, and changes nothing.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forms ?#%.db")
	s := stock(t, open(t, path, nil), 320)
	sound := map[string]finding.Level{
		"database file": finding.OK, "database": finding.OK, "journal": finding.OK, "schema": finding.OK, "clock": finding.OK, "integrity": finding.OK,
	}
	look(t, path, &sqlite.DiagnoseOptions{Deep: true}, sound, "")
	look(t, path, &sqlite.DiagnoseOptions{Now: func() time.Time { return time.Now().Add(-time.Hour) }},
		map[string]finding.Level{"clock": finding.Problem}, "NTP")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Dir(path) + "/*-wal"); len(left) > 0 {
		t.Errorf("after Close there is %v: not all is in the file", left)
	}
	before := content(t, path)
	look(t, path, &sqlite.DiagnoseOptions{Deep: true}, sound, "")
	if content(t, path) != before {
		t.Error("looking changed the file")
	}

	for _, c := range []struct {
		name   string
		damage func(path string) error
		level  finding.Level
		check  string
		advice string
	}{
		{"missing", os.Remove, finding.Warning, "database", "Start the server"},
		{"directory", func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		}, finding.Problem, "database", "file of the database"},
		{"open to all", func(path string) error { return os.Chmod(path, 0o644) }, finding.Warning, "database file", "chmod 600"},
		{"no database", func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("no database ", 999)), 0o600) }, finding.Problem, "database", "backup"},
		{"damaged page", func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			_, err = f.WriteAt([]byte(strings.Repeat("\xff", 4096)), 40*4096)
			return err
		}, finding.Problem, "integrity", "backup"},
		{"rollback journal", statement("PRAGMA journal_mode=DELETE"), finding.Warning, "journal", "Start the server"},
		{"old schema", statement("DELETE FROM formsvc_schema WHERE version > 1"), finding.Warning, "schema", "migrate up"},
		{"no schema", statement("DELETE FROM formsvc_schema"), finding.Warning, "schema", "migrate up"},
		{"new schema", statement("INSERT INTO formsvc_schema (version, applied_at) VALUES (99, 0)"), finding.Problem, "schema", "release"},
		{"schema of another build", statement("UPDATE formsvc_schema SET sha256 = '0' WHERE version = 2"), finding.Problem, "schema", "the build that made it"},
	} {
		copied := filepath.Join(t.TempDir(), "copy.db")
		if err := os.WriteFile(copied, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.damage(copied); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		look(t, copied, &sqlite.DiagnoseOptions{Deep: true}, map[string]finding.Level{c.check: c.level}, c.advice)
	}
}

func statement(text string) func(path string) error {
	return func(path string) error {
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		_, err = db.Exec(text)
		return err
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// look checks the levels of findings, and that those that aren't ok have the advice.
func look(t *testing.T, path string, opts *sqlite.DiagnoseOptions, want map[string]finding.Level, advice string) {
	t.Helper()
	found := make(map[string]finding.Level)
	advised := ""
	for _, f := range sqlite.Diagnose(t.Context(), path, opts) {
		if f.Detail == "" || (f.Level == finding.OK) != (f.Advice == "") {
			t.Errorf("a finding without words: %+v", f)
		}
		if found[f.Check] == "" || f.Level != finding.OK {
			found[f.Check] = f.Level
			advised += f.Advice
		}
	}
	for check, level := range want {
		if found[check] != level {
			t.Errorf("%s: %s is %q, want %q", filepath.Base(path), check, found[check], level)
		}
	}
	if !strings.Contains(advised, advice) {
		t.Errorf("the advice is %q, want %q", advised, advice)
	}
}

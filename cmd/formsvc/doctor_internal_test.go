package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"database/sql"
)

// A diagnosis is the output of the doctor.
type diagnosis struct {
	result

	list []map[string]any
}

// examine runs the doctor.
func (s *shell) examine(t testing.TB, flags ...string) *diagnosis {
	t.Helper()
	d := &diagnosis{result: s.try(t, append([]string{"doctor", "--json"}, flags...)...)}
	d.list = objects(t, d.out)
	bad := slices.ContainsFunc(d.list, func(f map[string]any) bool { return f["level"] == "problem" })
	if bad != (d.status == 1) || len(d.list) == 0 {
		t.Errorf("status %d with\n%s%s", d.status, d.out, d.err)
	}
	return d
}

// says checks that there is a finding whose detail and advice contain the texts.
func (d *diagnosis) says(t testing.TB, level, check, detail, advice string) {
	t.Helper()
	if !slices.ContainsFunc(d.list, func(f map[string]any) bool {
		given, _ := f["advice"].(string)
		return f["level"] == level && strings.HasPrefix(f["check"].(string), check) && strings.Contains(f["detail"].(string), detail) && strings.Contains(given, advice)
	}) {
		t.Errorf("there is no %s of %s: %s -> %s in\n%s", level, check, detail, advice, d.out)
	}
}

// The doctor finds nothing wrong with a healthy service, and leaves nothing behind.
func TestDoctorOfHealthyService(t *testing.T) {
	t.Parallel()
	for name, sh := range map[string]*shell{"sqlite": newShell(t), "postgres": onPostgres(t)} {
		s, _ := filled(t, sh)
		d := s.examine(t, "--min-free", "1MB")
		for _, f := range d.list {
			if f["level"] != "ok" && !strings.Contains(f["detail"].(string), "fsync") { // the test's server runs without
				t.Errorf("%s: %v", name, f)
			}
		}
		for _, check := range []string{"environment", "data directory", "database", "secrets", "deliveries", "files"} {
			d.says(t, "ok", check, "", "")
		}
		if name == "postgres" && !strings.Contains(d.out, `"server settings"`) {
			t.Error("the settings of Postgres were not checked")
		}
		if list := s.stored(t); len(list) != 1 {
			t.Errorf("%s: the files are %q", name, list)
		}
		text := s.try(t, "doctor")
		contains(t, name, text.out, "ok       database: it can be used")
		contains(t, name, text.err, "checks ok")
	}
}

// The doctor finds problems with the environment, the directories, the keys and the disk.
func TestDoctorFindsLocalProblems(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env = environment{"FORMSVC_NOTHING_OF_OURS=x", "FORMSVC_KEY=x", "PATH=/bin"}
	d := s.examine(t)
	d.says(t, "warning", "environment", "FORMSVC_NOTHING_OF_OURS", "serve --help")
	lacks(t, "the findings", d.out, "FORMSVC_KEY")
	d.says(t, "warning", "data directory", "doesn't exist yet", "Start the server")
	d.says(t, "problem", "database", "no database at "+s.data, "Start the server")
	d.says(t, "warning", "files", "doesn't exist yet", "Start the server")
	if _, err := os.Stat(s.data); err == nil {
		t.Error("the data directory was created")
	}

	service, _ := filled(t, s)
	service.stop()
	files, keys := filepath.Join(s.data, "files"), filepath.Join(s.data, keyFile)
	noError(t, errors.Join(os.Chmod(s.data, 0o755), os.Chmod(files, 0o755)))
	d = s.examine(t, "--min-free", "1000TB")
	for check, path := range map[string]string{"data directory": s.data, "files": files} {
		d.says(t, "warning", check, "0755", "chmod 700 "+path)
		d.says(t, "warning", check, "free", "Free some space")
	}

	own, err := os.ReadFile(keys)
	noError(t, errors.Join(err, os.Chmod(keys, 0o644)))
	s.examine(t).says(t, "problem", "database", "0644", "")
	noError(t, os.Remove(keys))
	d = s.examine(t)
	d.says(t, "problem", "secrets", "unknown key", "secret.keys")
	noError(t, os.WriteFile(keys, own, 0o600))
	noError(t, errors.Join(os.RemoveAll(files), os.WriteFile(files, nil, 0o600)))
	s.examine(t).says(t, "problem", "files", "", "")
}

// The doctor finds overdue deliveries, and shows no tokens of URLs.
func TestDoctorFindsOverdueDeliveries(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t, "--webhook-retries", "1h")
	s.hook(t, "http://127.0.0.1:9/?token=hunter2", "response.created")
	s.submit(t, s.campaign(t))
	until(t, "the first attempt has failed", func() bool {
		return strings.Contains(s.do(t, "webhooks", "deliveries", s.list(t, "webhooks", "list")[0]["uuid"].(string)), "connect")
	})
	s.stop()
	db, err := sql.Open("sqlite", filepath.Join(s.data, "formsvc.db"))
	if err == nil {
		_, err = db.ExecContext(t.Context(), "UPDATE formsvc_deliveries SET due_at = ?", time.Now().Add(-time.Hour).UnixMicro())
	}
	noError(t, errors.Join(err, db.Close()))
	d := s.examine(t)
	d.says(t, "problem", "deliveries", "1 are pending", "Start a server")
	lacks(t, "the findings", d.out+d.err, "hunter2")
	damaged := filepath.Join(s.data, "formsvc.db")
	noError(t, os.WriteFile(damaged, []byte(http.StatusText(http.StatusTeapot)), 0o600))
	s.examine(t).says(t, "problem", "database", "", "")
}

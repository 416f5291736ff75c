//go:build long

package main_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// diagnosis is the output of the doctor.
type diagnosis struct {
	result

	list []finding
}

type finding struct{ Check, Level, Detail, Advice string }

// examine runs the doctor on the database and the files of a filing.
func (w *filing) examine(t testing.TB, env []string, args ...string) diagnosis {
	t.Helper()
	args = on(t, w.dsn, slices.Concat([]string{"doctor", "--json"}, args, w.flags))
	d := diagnosis{result: invocation{args: args, env: slices.Concat(w.env, env)}.run(t)}
	for line := range strings.Lines(d.out) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("doctor --json: %v\n%s%s", err, d.out, d.err)
		}
		d.list = append(d.list, f)
	}
	bad := slices.ContainsFunc(d.list, func(f finding) bool { return f.Level == "problem" })
	if bad != (d.status == 1) || len(d.list) == 0 {
		t.Errorf("status %d with\n%s%s", d.status, d.out, d.err)
	}
	return d
}

// says checks that there is a finding with this level whose detail and advice contain the texts.
func (d *diagnosis) says(t testing.TB, level, check, detail, advice string) {
	t.Helper()
	if !slices.ContainsFunc(d.list, func(f finding) bool {
		return f.Level == level && strings.HasPrefix(f.Check, check) && strings.Contains(f.Detail, detail) && strings.Contains(f.Advice, advice)
	}) {
		t.Errorf("there is no %s of %s: %s -> %s in\n%s", level, check, detail, advice, d.out)
	}
}

// onlyExpected checks that all findings are ok, except those about the test machine.
func (d *diagnosis) onlyExpected(t testing.TB) {
	t.Helper()
	for _, f := range d.list {
		machine := strings.Contains(f.Detail, "fsync") // the test's server runs without
		if f.Level != "ok" && !machine {
			t.Errorf("%s: %s: %s -> %s", f.Level, f.Check, f.Detail, f.Advice)
		}
	}
}

// The doctor finds nothing wrong with a healthy service, on any database and blob store.
func TestDoctorFindsNothingOnHealthyService(t *testing.T) {
	onEachPlace(t, func(t *testing.T, w *filing) {
		w.serve(t)
		r := receiver(t)
		hook(t, w.dsn, r.URL(), "all")
		w.upload(t, "f", bytesOf(1, 1000))
		d := w.examine(t, nil, slices.Concat(allowLoopback, []string{"--deep", "--min-free", "1MB"})...)
		d.onlyExpected(t)
		for _, check := range []string{"environment", "data directory", "database", "secrets", "deliveries", "files"} {
			if !slices.ContainsFunc(d.list, func(f finding) bool { return f.Check == check }) {
				t.Errorf("%s was not looked at", check)
			}
		}
		if blobs, left := w.stored(t); len(blobs) != 1 || len(left) != 0 {
			t.Errorf("it left %v and %v", blobs, left)
		}
		if text := (invocation{args: on(t, w.dsn, slices.Concat([]string{"doctor"}, allowLoopback, w.flags)), env: w.env}).run(t); !strings.Contains(text.out, "ok       database: it can be used") ||
			!strings.Contains(text.err, "checks ok") {
			t.Errorf("as text:\n%s%s", text.out, text.err)
		}
	})
}

// The doctor finds problems with the environment, the directories and the keys.
func TestDoctorFindsLocalProblems(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := &filing{dsn: "sqlite:" + filepath.Join(dir, "formsvc.db"), place: places()["disk"](t)}
	d := w.examine(t, []string{"FORMSVC_NOTHING_OF_OURS=x"})
	d.says(t, "warning", "environment", "FORMSVC_NOTHING_OF_OURS", "serve --help")
	d.says(t, "warning", "data directory", "doesn't exist yet", "Start the server")
	d.says(t, "problem", "database", "no database at "+dir, "Start the server")
	d.says(t, "warning", "files", "doesn't exist yet", "Start the server")
	if made, _ := os.ReadDir(dir); len(made) > 0 {
		t.Errorf("looking made %v", made)
	}
	if err := os.WriteFile(filepath.Join(dir, "formsvc.db.restoring"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d = w.examine(t, nil)
	d.says(t, "problem", "database", `run "formsvc restore" again`, "")
	if err := os.Remove(filepath.Join(dir, "formsvc.db.restoring")); err != nil {
		t.Fatal(err)
	}

	w.serve(t)
	hook(t, w.dsn, receiver(t).URL(), "all")
	data := dataDir(t, w.dsn)
	if err := errors.Join(os.Chmod(data, 0o755), os.Chmod(w.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	d = w.examine(t, nil, slices.Concat(allowLoopback, []string{"--min-free", "1000TB"})...)
	d.says(t, "warning", "data directory", "0755", "chmod 700")
	d.says(t, "warning", "data directory", "free", "Free some space")
	d.says(t, "warning", "files", "0755", "chmod 700")
	d.says(t, "warning", "files", "free", "Free some space")

	keys := filepath.Join(data, "secret.keys")
	own, err := os.ReadFile(keys)
	if err != nil || os.Chmod(keys, 0o644) != nil {
		t.Fatal(err)
	}
	d = w.examine(t, nil, allowLoopback...)
	d.says(t, "problem", "secrets key", "0644", "chmod 600")
	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	d = w.examine(t, nil, allowLoopback...)
	d.says(t, "problem", "secrets", "encrypted with keys that are missing here", "secret.keys")
	if err := os.WriteFile(keys, own, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The doctor finds problems with the blob store, on a disk and in a bucket.
func TestDoctorFindsFileProblems(t *testing.T) {
	onEachPlace(t, func(t *testing.T, w *filing) {
		w.serve(t)
		gone := w.upload(t, "gone", bytesOf(1, 1000))
		w.upload(t, "short", bytesOf(2, 1000))
		w.damage(t, gone.UUID, func([]byte) []byte { return nil })
		d := w.examine(t, nil, "--deep")
		d.says(t, "problem", "files", "1 of 2 are missing or damaged; formsvc files verify", "--blobs")

		if w.place.server == nil {
			if err := os.RemoveAll(w.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			d = w.examine(t, nil)
			d.says(t, "problem", "files", "", "")
			return
		}
		d = w.examine(t, []string{"AWS_SECRET_ACCESS_KEY=another one"})
		d.says(t, "problem", "files", "", "credentials")
		w.place.server.Stop()
		d = w.examine(t, nil)
		d.says(t, "problem", "files", "", "credentials")
	})
}

// The doctor finds problems with webhooks and pending deliveries, and shows no tokens of URLs.
func TestDoctorFindsWebhookProblems(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		w := &filing{dsn: dsn, place: places()["disk"](t)}
		w.serve(t, "--webhook-retries", "10ms", "--webhook-timeout", "2s")
		refused := httptest.NewServer(http.NotFoundHandler())
		refused.Close()
		hook(t, dsn, refused.URL+"/?token=hunter2", "all")
		hook(t, dsn, "https://nobody.invalid/", "file.uploaded")
		d := w.examine(t, nil)
		d.says(t, "problem", "webhook ", "not public", "--webhook-allow")
		if strings.Contains(d.out+d.err, "hunter2") {
			t.Error("it shows what is secret in a URL")
		}
		w.submit(t, w.campaign(t, "c"), "m")
		w.kill()
		change(t, dsn, "UPDATE formsvc_deliveries SET state = 0, due_at = 1767225600000000")
		d = w.examine(t, nil)
		d.says(t, "problem", "deliveries", "1 are pending", "Start a server")
	})
}

// change changes the database by hand.
func change(t testing.TB, dsn, text string) {
	t.Helper()
	driver, source := "pgx", dsn
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

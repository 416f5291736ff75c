//go:build long

package main_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/storage/finding"
)

// diagnosis is the output of the doctor.
type diagnosis struct {
	result

	list []finding.Finding
}

// examine runs the doctor on the database and the files of a filing.
func (w *filing) examine(t testing.TB, env []string, args ...string) diagnosis {
	t.Helper()
	args = on(t, w.dsn, slices.Concat([]string{"doctor", "--json"}, args, w.flags))
	d := diagnosis{result: invocation{args: args, env: slices.Concat(w.env, env)}.run(t)}
	for line := range strings.Lines(d.out) {
		var f finding.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("doctor --json: %v\n%s%s", err, d.out, d.err)
		}
		d.list = append(d.list, f)
	}
	bad := slices.ContainsFunc(d.list, func(f finding.Finding) bool { return f.Level == finding.Problem })
	if bad != (d.status == 1) || len(d.list) == 0 {
		t.Errorf("status %d with\n%s%s", d.status, d.out, d.err)
	}
	return d
}

// says checks that there is a finding with this level whose detail and advice contain the texts.
func (d *diagnosis) says(t testing.TB, level finding.Level, check, detail, advice string) {
	t.Helper()
	if !slices.ContainsFunc(d.list, func(f finding.Finding) bool {
		return f.Level == level && strings.HasPrefix(f.Check, check) && strings.Contains(f.Detail, detail) && strings.Contains(f.Advice, advice)
	}) {
		t.Errorf("there is no %s of %s: %s -> %s in\n%s", level, check, detail, advice, d.out)
	}
}

// onlyExpected checks that all findings are ok, except those about the test machine.
func (d *diagnosis) onlyExpected(t testing.TB) {
	t.Helper()
	for _, f := range d.list {
		machine := f.Check == "fsync" || strings.Contains(f.Detail, "tmpfs") || strings.Contains(f.Detail, "overlay")
		if f.Level != finding.OK && !machine {
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
		d := w.examine(t, nil, slices.Concat(allowLoopback, []string{"--deep", "--connect", "--base-url", w.client.url, "--min-free", "1MB"})...)
		d.onlyExpected(t)
		for _, check := range []string{"environment", "data directory", "database", "schema", "clock", "secrets", "webhooks", "deliveries", "files", "server"} {
			if !slices.ContainsFunc(d.list, func(f finding.Finding) bool { return f.Check == check }) {
				t.Errorf("%s was not looked at", check)
			}
		}
		if blobs, left := w.stored(t); len(blobs) != 1 || len(left) != 0 {
			t.Errorf("it left %v and %v", blobs, left)
		}
		if text := (invocation{args: on(t, w.dsn, slices.Concat([]string{"doctor"}, allowLoopback, w.flags)), env: w.env}).run(t); !strings.Contains(text.out, "ok       schema: up to date") ||
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
	d := w.examine(t, []string{"FORMSVC_BASE_ULR=x", "FORMSVC_NOTHING_OF_OURS=x"})
	d.says(t, finding.Warning, "environment", "FORMSVC_BASE_ULR", "FORMSVC_BASE_URL?")
	d.says(t, finding.Warning, "environment", "FORMSVC_NOTHING_OF_OURS", "serve --help")
	d.says(t, finding.Warning, "data directory", "doesn't exist yet", "Start the server")
	d.says(t, finding.Problem, "database", "no database at "+dir, "Start the server")
	d.says(t, finding.Warning, "files", "doesn't exist yet", "Start the server")
	if made, _ := os.ReadDir(dir); len(made) > 0 {
		t.Errorf("looking made %v", made)
	}
	if err := os.WriteFile(filepath.Join(dir, "formsvc.db.restoring"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d = w.examine(t, nil)
	d.says(t, finding.Problem, "database", "interrupted", "formsvc restore")
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
	d.says(t, finding.Warning, "data directory", "0755", "chmod 700")
	d.says(t, finding.Warning, "data directory", "free", "Free some space")
	d.says(t, finding.Warning, "files", "0755", "chmod 700")
	d.says(t, finding.Warning, "files", "free", "Free some space")

	keys := filepath.Join(data, "secret.keys")
	own, err := os.ReadFile(keys)
	if err != nil || os.Chmod(keys, 0o644) != nil {
		t.Fatal(err)
	}
	d = w.examine(t, nil, allowLoopback...)
	d.says(t, finding.Problem, "secrets key", "0644", "chmod 600")
	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	d = w.examine(t, nil, allowLoopback...)
	d.says(t, finding.Problem, "secrets", "encrypted with keys that are missing here", "secret.keys")
	d.says(t, finding.Problem, "webhook ", "can't be decrypted", "rotate")
	if err := os.WriteFile(keys, own, 0o600); err != nil {
		t.Fatal(err)
	}

	memory := "/dev/shm" // a file system in memory, on every Linux
	if _, err := os.Stat(memory); err == nil {
		place, err := os.MkdirTemp(memory, "formsvc-test-") //nolint:usetesting // it is to be there
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(place) })
		d = w.examine(t, nil, "--data", place)
		d.says(t, finding.Warning, "data directory", "tmpfs", "Move it")
	}
}

// The doctor finds problems with the blob store, on a disk and in a bucket.
func TestDoctorFindsFileProblems(t *testing.T) {
	onEachPlace(t, func(t *testing.T, w *filing) {
		w.serve(t)
		gone := w.upload(t, "gone", bytesOf(1, 1000))
		w.upload(t, "short", bytesOf(2, 1000))
		w.damage(t, gone.UUID, func([]byte) []byte { return nil })
		d := w.examine(t, nil)
		d.says(t, finding.Problem, "files", "of 2 files in the database, 1 are missing", "--blobs")
		d = w.examine(t, nil, "--deep")
		d.says(t, finding.Problem, "files", "1 of 2 files are missing or damaged", "verify")

		unknown := filepath.Join(w.dir, "ab", "01890a5d-ac96-774b-bcce-b302099a80ab")
		other := filepath.Join(w.dir, "photo.jpg")
		if err := errors.Join(os.MkdirAll(filepath.Dir(unknown), 0o700), os.WriteFile(unknown, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
		age(t, unknown)
		d = w.examine(t, nil)
		d.says(t, finding.Warning, "files", "1 are not in the database", "its own directory")
		if err := os.WriteFile(other, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		d = w.examine(t, nil)
		d.says(t, finding.Warning, "files", "photo.jpg", "its own directory")

		if w.place.server == nil {
			if err := os.RemoveAll(w.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			d = w.examine(t, nil)
			d.says(t, finding.Problem, "files", "", "")
			return
		}
		d = w.examine(t, []string{"AWS_SECRET_ACCESS_KEY=another one"})
		d.says(t, finding.Problem, "files", "storing, reading and removing a test file failed", "credentials")
		w.place.server.Stop()
		d = w.examine(t, nil)
		d.says(t, finding.Problem, "files", "refused", "S3 server")
	})
}

// The doctor finds a wrong clock of an S3 server.
func TestDoctorComparesClocks(t *testing.T) {
	t.Parallel()
	w := &filing{dsn: databases()[0].dsn(t), place: places()["s3"](t)}
	w.serve(t)
	target, err := url.Parse(w.place.server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	slow := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(-90*time.Minute).UTC().Format(http.TimeFormat))
			return nil
		},
	})
	defer slow.Close()
	u, err := url.Parse(w.place.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("endpoint", slow.URL)
	u.RawQuery = q.Encode()
	w.flags = []string{"--blobs", u.String()}
	d := w.examine(t, nil)
	d.says(t, finding.Problem, "clock", "-1h", "NTP")
}

// The doctor finds problems with webhooks and pending deliveries, and shows no tokens of URLs.
func TestDoctorFindsWebhookProblems(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		w := &filing{dsn: dsn, place: places()["disk"](t)}
		w.serve(t, "--webhook-retries", "10ms", "--webhook-timeout", "2s")
		refused := httptest.NewServer(http.NotFoundHandler())
		refused.Close()
		unsigned := httptest.NewUnstartedServer(http.NotFoundHandler())
		unsigned.Config.ErrorLog = log.New(io.Discard, "", 0)
		unsigned.StartTLS()
		t.Cleanup(unsigned.Close)
		hook(t, dsn, refused.URL+"/?token=hunter2", "all")
		hook(t, dsn, unsigned.URL, "file.uploaded")
		hook(t, dsn, "https://nobody.invalid/", "file.uploaded")
		d := w.examine(t, nil, "--connect")
		d.says(t, finding.Problem, "webhook ", "not public", "--webhook-allow")
		d = w.examine(t, nil, append([]string{"--connect"}, allowLoopback...)...)
		d.says(t, finding.Problem, "webhook ", "nobody.invalid does not resolve", "Correct the name")
		d.says(t, finding.Problem, "webhook ", "refused", "receiver is running")
		d.says(t, finding.Problem, "webhook ", "certificate", "certificate")
		if strings.Contains(d.out+d.err, "hunter2") {
			t.Error("it shows what is secret in a URL")
		}
		w.submit(t, w.campaign(t, "c"), "m")
		eventually(t, "a delivery fails permanently", func() bool {
			d := w.examine(t, nil, allowLoopback...)
			return strings.Contains(d.out, "1 of its newest failures are from the last day")
		})

		d = w.examine(t, nil, "--base-url", w.client.url+"/nowhere")
		d.says(t, finding.Problem, "server", "404", "--base-url")
		w.kill()
		d = w.examine(t, nil, "--base-url", w.client.url)
		d.says(t, finding.Problem, "server", "refused", "--base-url")

		change(t, dsn, "UPDATE formsvc_deliveries SET state = 0, due_at = 1767225600000000")
		d = w.examine(t, nil)
		d.says(t, finding.Problem, "deliveries", "1 are pending", "Start a server")
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

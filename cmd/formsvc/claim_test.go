//go:build long

package main_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// stop shuts the server down gracefully.
func (w *filing) stop(t testing.TB) {
	t.Helper()
	w.terminate(t)
	w.stopped(t)
}

// beside returns another, empty database of the same kind that uses the files of w.
func (w *filing) beside(t testing.TB) *filing {
	t.Helper()
	for _, db := range databases() {
		if strings.HasPrefix(w.dsn, db.name) {
			return &filing{dsn: db.dsn(t), place: w.place}
		}
	}
	t.Fatal("of which kind is the database?")
	return nil
}

// marker returns the path of the blob that names the owning database.
func (p *place) marker() string { return filepath.Join(p.dir, formsvc.MarkerKey) }

// A server and the commands of another database can't touch files, even if an earlier release without identities stored
// them. Their own server keeps working.
func TestFilesOfAnotherDatabase(t *testing.T) {
	for _, marked := range []bool{true, false} {
		t.Run(map[bool]string{true: "claimed", false: "used by an earlier release"}[marked], func(t *testing.T) {
			onEachPlace(t, func(t *testing.T, w *filing) { wantSafe(t, w, marked) })
		})
	}
}

func wantSafe(t *testing.T, w *filing, marked bool) {
	w.serve(t)
	content := bytesOf(1, 1000)
	f := w.upload(t, "one", content)
	w.upload(t, "two", bytesOf(2, 1000))
	w.upload(t, "three", bytesOf(3, 1000))
	w.stop(t)
	if !marked {
		if err := os.Remove(w.marker()); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := w.stored(t)
	age(t, before...)

	other := w.beside(t)
	const refusal = "the blob store belongs to another database"
	if got := other.refused(t); !strings.Contains(got, refusal) || !strings.Contains(got, "formsvc copy") || !strings.Contains(got, "--blobs") {
		t.Errorf("the server of another database ended with\n%s", got)
	}
	for _, flag := range []string{"--json", "--force", "--dry-run"} {
		if got := other.manage(t, "files", "sweep", flag); got.status != 1 || !strings.Contains(got.err, refusal) || got.out != "" {
			t.Errorf("sweep %s: %+v", flag, got)
		}
	}
	d := other.examine(t, nil)
	d.says(t, "problem", "files", refusal, "--blobs")
	if got := manage(t, other.dsn, "accounts", "list", "--json"); got != "" {
		t.Errorf("a server that was refused made the account %s", got)
	}
	if after, _ := w.stored(t); !slices.Equal(after, before) {
		t.Errorf("there was %q, and is %q", before, after)
	}
	if _, err := os.Stat(w.marker()); marked != (err == nil) {
		t.Errorf("the marker: %v", err)
	}

	w.serve(t)
	w.has(t, f.UUID, content)
	if _, err := os.Stat(w.marker()); err != nil {
		t.Error(err)
	}
	w.sweepsUp(t, len(before))
}

// refused starts a server, which must end with status 1, and returns its log.
func (w *filing) refused(t testing.TB) string {
	t.Helper()
	s := execute(t, w.dsn, w.env, w.flags...)
	eventually(t, "formsvc ends", s.ended)
	if code := s.cmd.ProcessState.ExitCode(); code != 1 || s.out.String() != "" {
		t.Errorf("formsvc ended with %v, want status 1; it printed %q", s.cmd.ProcessState, s.out.String())
	}
	return s.log.String()
}

// A server that starts while S3 is down detects a bucket of another database before it uses it.
func TestUnreachableBucketOfAnotherDatabaseIsRefused(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		w := &filing{dsn: dsn, place: places()["s3"](t)}
		w.serve(t)
		w.upload(t, "one", bytesOf(1, 1000))
		w.stop(t)
		before, _ := w.stored(t)
		w.place.server.Stop()
		other := w.beside(t)
		other.serve(t)
		a, err := other.send(t.Context(), "two", bytes.NewReader(bytesOf(2, 1000)), 1000)
		if err != nil {
			t.Fatal(err)
		}
		wantUnavailable(t, "upload", a)
		w.place.server.Restart()
		a, err = other.send(t.Context(), "two", bytes.NewReader(bytesOf(2, 1000)), 1000)
		if err != nil || a.status != http.StatusServiceUnavailable {
			t.Errorf("upload: status %d, %v\n%s", a.status, err, a.body)
		}
		eventually(t, "the log says why", func() bool { return strings.Contains(other.log.String(), "belongs to another database") })
		if after, _ := w.stored(t); !slices.Equal(after, before) {
			t.Errorf("there was %q, and is %q", before, after)
		}
	})
}

// Nodes of one database that start together on an empty blob store all serve.
func TestNodesClaimAnEmptyPlaceTogether(t *testing.T) {
	onEachPlace(t, func(t *testing.T, w *filing) {
		nodes := make([]*server, 3)
		for i := range nodes {
			nodes[i] = execute(t, w.dsn, w.env, w.flags...)
		}
		for _, s := range nodes {
			s.started(t)
		}
		if _, err := os.Stat(w.marker()); err != nil {
			t.Error(err)
		}
	})
}

// A server that is started on an empty Postgres beside a used SQLite database refuses, and says how to move the data.
func TestEmptyPostgresBesideUsedSQLiteIsRefused(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	path := filepath.Join(data, "formsvc.db")
	own := &filing{dsn: "sqlite:" + path, place: &place{flags: []string{"--data", data}, dir: filepath.Join(data, "files")}}
	dsn := databases()[1].dsn(t)
	moving := &filing{dsn: dsn, place: own.place}

	own.serve(t)
	content := bytesOf(1, 1000)
	f := own.upload(t, "one", content)
	got := moving.refused(t) // beside a server that runs
	for _, want := range []string{path, "there are campaigns in ", "formsvc copy --from sqlite:" + path + " --to postgres://…", "--data"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, dsn) {
		t.Errorf("it shows the data source name:\n%s", got)
	}
	d := moving.examine(t, nil)
	d.says(t, "problem", "database", path, "--data")
	if r := attempt(t, dsn, "migrate", "status"); r.status != 1 || !strings.Contains(r.err, "no tables of formsvc") {
		t.Errorf("a server that was refused changed the database: %d\n%s%s", r.status, r.out, r.err)
	}
	own.has(t, f.UUID, content)
	own.stop(t)

	elsewhere := t.TempDir()
	anew := execute(t, dsn, nil, "--data", elsewhere).started(t)
	anew.firstKey(t)
	anew.terminate(t)
	anew.stopped(t)
	if err := os.WriteFile(filepath.Join(data, "secret.keys"), read(t, filepath.Join(elsewhere, "secret.keys")), 0o600); err != nil {
		t.Fatal(err)
	}
	// A Postgres database that is in use may have an old SQLite database beside it.
	execute(t, dsn, nil, "--data", data, "--blobs", "file:"+filepath.Join(elsewhere, "files")).started(t)
}

// read returns what is in a file.
func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

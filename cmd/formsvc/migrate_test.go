//go:build long

package main_test

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // registers the driver "sqlite" with database/sql
)

// "migrate status" on an empty database lists every migration as not applied and creates no tables. "migrate up" creates
// them, and does nothing the second time.
func TestMigrateStatusChangesNothing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		steps := migrations(t, dsn)
		if len(steps) == 0 {
			t.Fatal("migrate status lists nothing")
		}
		for _, m := range append(steps, migrations(t, dsn)...) {
			if m.AppliedAt != "" {
				t.Errorf("step %d (%s) of an empty database was applied at %s", m.Version, m.Name, m.AppliedAt)
			}
		}
		if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
			if made, err := filepath.Glob(path + "*"); err != nil || len(made) > 0 {
				t.Errorf("migrate status made %v (%v)", made, err)
			}
		} else if made := tables(t, dsn); len(made) > 0 {
			t.Errorf("migrate status made the tables %v", made)
		}

		manage(t, dsn, "migrate", "up")
		applied := migrations(t, dsn)
		for i, m := range applied {
			if m.AppliedAt == "" || m.Version != i+1 {
				t.Errorf("after migrate up, step %d is %+v", i+1, m)
			}
		}
		if n := len(tables(t, dsn)); n < 5 {
			t.Errorf("after migrate up there are %d tables", n)
		}
		manage(t, dsn, "migrate", "up")
		if again := migrations(t, dsn); len(again) != len(applied) || again[0] != applied[0] {
			t.Errorf("migrate up a second time made %+v of %+v", again, applied)
		}
	})
}

// Several servers that start at once on an empty database migrate it once and create one account. One of them prints the
// key, which works on all.
func TestServersThatStartAtOnceShareOneFirstKey(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		servers := make([]*server, 3)
		for i := range servers {
			servers[i] = launch(t, dsn)
		}
		var printed strings.Builder
		for _, s := range servers {
			eventually(t, "formsvc serves", func() bool { return s.serving() || s.ended() })
			if !s.serving() {
				t.Fatalf("formsvc ended: %v\n%s", s.cmd.ProcessState, s.log.String())
			}
		}
		for _, s := range servers {
			s.terminate(t)
			s.stopped(t)
			printed.WriteString(s.out.String())
		}
		keys := make(map[string]bool)
		for _, key := range keyPattern.FindAllString(printed.String(), -1) {
			keys[key] = true
		}
		if len(keys) != 1 {
			t.Fatalf("%d keys were shown, want 1", len(keys))
		}
		if n := strings.Count(manage(t, dsn, "accounts", "list", "--json"), "\n"); n != 1 {
			t.Errorf("there are %d accounts, want 1", n)
		}
		s := start(t, dsn)
		for key := range keys {
			newClient(t, s.url, key).want(t, http.StatusOK, http.MethodGet, "/v1/me", nil, nil)
		}
	})
}

// migration is a migration in the output of "migrate status".
type migration struct {
	Version   int
	Name      string
	AppliedAt string // empty while it is null
}

// migrations returns the output of "migrate status".
func migrations(t testing.TB, dsn string) []migration {
	t.Helper()
	var list []migration
	r := attempt(t, dsn, "migrate", "status", "--json")
	applied := false
	for line := range strings.Lines(r.out) {
		var m migration
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("migrate status --json: %v\n%s", err, line)
		}
		list = append(list, m)
		applied = applied || m.AppliedAt != ""
	}
	if applied != (r.status == 0) || !applied && !strings.Contains(r.err, "formsvc serve") {
		t.Errorf("migrate status: status %d, %q, though there are steps that were applied: %t", r.status, r.err, applied)
	}
	return list
}

// query runs a query of one column on the database and returns the rows.
func query[T any](t testing.TB, dsn, sqlite, postgres string) (list []T) {
	t.Helper()
	driver, source, text := "pgx", dsn, postgres
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, source, text = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)", sqlite
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// tables returns the names of the tables in the database.
func tables(t testing.TB, dsn string) []string {
	t.Helper()
	return query[string](t, dsn, "SELECT name FROM sqlite_master WHERE type = 'table'",
		"SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()")
}

// rows returns how many rows a table has.
func rows(t testing.TB, dsn, table string) int {
	t.Helper()
	text := "SELECT count(*) FROM " + table
	return query[int](t, dsn, text, text)[0]
}

//go:build long

package postgres_test

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/finding"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// found returns the worst level of each check, and all advice.
func found(t *testing.T, dsn string, opts *postgres.DiagnoseOptions) (levels map[string]finding.Level, advice string) {
	t.Helper()
	levels = make(map[string]finding.Level)
	for _, f := range postgres.Diagnose(t.Context(), dsn, opts) {
		if f.Detail == "" || (f.Level == finding.OK) != (f.Advice == "") {
			t.Errorf("a finding without words: %+v", f)
		}
		if levels[f.Check] == "" || f.Level != finding.OK {
			levels[f.Check] = f.Level
			advice += f.Advice
		}
		if strings.Contains(f.Detail, "a check failed") {
			t.Error(f.Detail)
		}
	}
	return levels, advice
}

// with returns a data source name with another value of a parameter.
func with(t *testing.T, dsn, name, value string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	dsn := f.store.dsn
	f.add(f.svc)
	levels, _ := found(t, dsn, &postgres.DiagnoseOptions{LongTransaction: time.Hour})
	for check, level := range levels {
		want := finding.OK
		if check == "fsync" && setting(t, dsn, "fsync") == "off" { // the test server runs without it
			want = finding.Problem
		}
		if level != want {
			t.Errorf("%s: %s, want %s", check, level, want)
		}
	}
	if len(levels) < 13 {
		t.Errorf("only %d checks: %v", len(levels), levels)
	}
	for _, c := range []struct {
		dsn    string
		opts   *postgres.DiagnoseOptions
		check  string
		level  finding.Level
		advice string
	}{
		{"postgres://formsvc:hunter2@127.0.0.1:1/formsvc", nil, "database", finding.Problem, "pg_hba.conf"},
		{"postgres://formsvc:hunter2@[", nil, "database", finding.Problem, "postgres://"},
		{with(t, dsn, "synchronous_commit", "off"), nil, "synchronous_commit", finding.Problem, "synchronous_commit = on"},
		{with(t, dsn, "standard_conforming_strings", "off"), nil, "standard_conforming_strings", finding.Warning, "on for the role"},
		{dsn, &postgres.DiagnoseOptions{Nodes: 1000}, "connections", finding.Warning, "max_connections"},
		{dsn, &postgres.DiagnoseOptions{Now: func() time.Time { return time.Now().Add(time.Hour) }}, "clock", finding.Problem, "NTP"},
		{with(t, dsn, "search_path", "nowhere"), nil, "schema", finding.Warning, "migrate up"},
	} {
		levels, advice := found(t, c.dsn, c.opts)
		if levels[c.check] != c.level || !strings.Contains(advice, c.advice) || strings.Contains(advice, "hunter2") {
			t.Errorf("%s is %s, want %s; the advice is %s", c.check, levels[c.check], c.level, advice)
		}
	}
	f.exec("UPDATE formsvc_schema SET sha256 = '0' WHERE version = 2")
	if levels, advice := found(t, dsn, nil); levels["schema"] != finding.Problem || !strings.Contains(advice, "the build that made it") {
		t.Errorf("the schema of another build is %s, %s", levels["schema"], advice)
	}
	f.exec("UPDATE formsvc_schema SET sha256 = NULL WHERE version = 2")
	if _, err := f.db.ExecContext(t.Context(), "INSERT INTO formsvc_schema VALUES (99, 0)"); err != nil {
		t.Fatal(err)
	}
	if levels, _ := found(t, dsn, nil); levels["schema"] != finding.Problem {
		t.Errorf("a newer schema is %s", levels["schema"])
	}
}

func setting(t *testing.T, dsn, name string) (value string) {
	t.Helper()
	if err := raw(t, dsn).QueryRowContext(t.Context(), "SELECT current_setting(?)", name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// Diagnose finds transactions that hold up the feed: one that wrote and doesn't commit,
// both by the list of processes and by what the feed hides, and a prepared one.
func TestDiagnoseHeldUpFeed(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	long := &postgres.DiagnoseOptions{LongTransaction: time.Millisecond}
	tx, bound := f.begin()
	f.add(bound)
	f.add(f.svc)
	time.Sleep(10 * time.Millisecond)
	levels, advice := found(t, f.store.dsn, long)
	if levels["transactions"] != finding.Warning || levels["feed"] != finding.Warning || !strings.Contains(advice, "pg_terminate_backend") {
		t.Errorf("beside an open transaction: %v, %s", levels, advice)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}

	db := raw(t, f.store.dsn)
	name := "diagnose_" + rand.Text()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, text := range []string{"BEGIN", "SELECT txid_current()", "PREPARE TRANSACTION '" + name + "'"} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v (.ci/with-postgres allows it)", text, err)
		}
	}
	time.Sleep(10 * time.Millisecond)
	levels, advice = found(t, f.store.dsn, long)
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK PREPARED '"+name+"'"); err != nil {
		t.Fatal(err)
	}
	if levels["prepared transactions"] != finding.Warning || !strings.Contains(advice, "ROLLBACK PREPARED") {
		t.Errorf("beside a prepared transaction: %v, %s", levels, advice)
	}
}

// A database of another encoding, and one whose connections are nearly used up.
func TestDiagnoseOtherDatabases(t *testing.T) {
	t.Parallel()
	server := postgrestest.DSN(t)
	db, err := sql.Open("pgx", os.Getenv(postgrestest.Env))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	database := func(options string) string {
		name := "diagnose_" + strings.ToLower(rand.Text())
		if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name+" "+options); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = db.Exec("DROP DATABASE " + name + " WITH (FORCE)") })
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/" + name
		return u.String()
	}
	levels, advice := found(t, database("ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"), nil)
	if levels["server_encoding"] != finding.Problem || !strings.Contains(advice, "UTF8") {
		t.Errorf("SQL_ASCII is %s, %s", levels["server_encoding"], advice)
	}
	full := database("CONNECTION LIMIT 18")
	for range 17 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	levels, advice = found(t, full, nil)
	if levels["connections"] != finding.Warning || !strings.Contains(advice, "pg_stat_activity") {
		t.Errorf("17 of 18 connections are %s, %s", levels["connections"], advice)
	}
}

// A reader that had read more of the feed than was restored sees later events.
func TestRestoredFeed(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	f.add(f.svc)
	var end formsvc.EventPosition
	if got := f.readSoon(&end); len(got) != 1 {
		t.Fatalf("read %v", got)
	}
	lost := end
	lost.Commit += 1_000_000 // a position of a server that ran on after the dump
	if err := f.store.Restored(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := f.add(f.svc)
	for _, at := range []formsvc.EventPosition{end, lost} {
		if got := f.readSoon(&at); !slices.Equal(got, []formsvc.ID{id}) {
			t.Errorf("after %+v there is %v, want %s", at, got, id)
		}
	}
}

// readSoon polls until there is something: transactions of other tests can hold up the feed.
func (f *feed) readSoon(after *formsvc.EventPosition) (ids []formsvc.ID) {
	f.Helper()
	for deadline := time.Now().Add(2 * time.Minute); len(ids) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		ids = f.read(after, 10)
	}
	return ids
}

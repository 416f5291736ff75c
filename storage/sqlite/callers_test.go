package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/sqlite"
)

// OpenDB refuses settings that would break a promise later.
func TestOpenDBRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ dsn, exec, want string }{
		"nothing set": {
			dsn: "", want: "pragma journal_mode is delete",
		},
		"no flush": {
			dsn: "_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)&_pragma=secure_delete(1)&_pragma=synchronous(NORMAL)", want: "pragma synchronous is 1",
		},
		"no foreign keys": {
			dsn: "_pragma=journal_mode(WAL)&_pragma=secure_delete(1)&_pragma=synchronous(FULL)", want: "pragma foreign_keys is 0",
		},
		"what is deleted stays": {
			dsn: "_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)&_pragma=synchronous(FULL)", want: "pragma secure_delete is 0",
		},
		"set on one connection only": {
			dsn: "_pragma=journal_mode(WAL)&_pragma=secure_delete(1)&_pragma=synchronous(FULL)", exec: "PRAGMA foreign_keys = 1",
			want: "pragma foreign_keys is 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := must(sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+"?"+c.dsn))
			defer func() { _ = db.Close() }()
			must(db.ExecContext(t.Context(), c.exec))
			if _, err := sqlite.OpenDB(t.Context(), db, nil); err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "sqlite.DSN") {
				t.Errorf("error %v, want one with %q that says what to do", err, c.want)
			}
		})
	}
}

// A strangeDriver isn't ours.
type strangeDriver struct{}

func (strangeDriver) Connect(context.Context) (driver.Conn, error) { return strangeConn{}, nil }
func (strangeDriver) Driver() driver.Driver                        { return nil }

type strangeConn struct{ driver.Conn }

func (strangeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("no such function") }
func (strangeConn) Close() error                        { return nil }

func TestOpenDBRefusesAnotherDriver(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(strangeDriver{})
	defer func() { _ = db.Close() }()
	if _, err := sqlite.OpenDB(t.Context(), db, nil); err == nil || !strings.Contains(err.Error(), "not that of modernc.org/sqlite") {
		t.Errorf("error %v, want one that names the driver", err)
	}
	if _, err := sqlite.OpenDB(t.Context(), nil, nil); err == nil {
		t.Error("no database was taken for one")
	}
}

// DSN handles paths with characters that are special in a URL, and relative ones.
func TestDSN(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{"forms.db", "a b?#%.db", filepath.Join(dir, "c&d=e.db")} {
		db := must(sql.Open("sqlite", sqlite.DSN(path)))
		s, err := sqlite.OpenDB(t.Context(), db, nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var file string
		noError(t, db.QueryRowContext(t.Context(), "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&file))
		if filepath.Base(file) != filepath.Base(path) {
			t.Errorf("%s was opened as %s", path, file)
		}
		if err := errors.Join(s.Close(), db.PingContext(t.Context()), db.Close()); err != nil { // Close leaves it open
			t.Error(err)
		}
	}
}

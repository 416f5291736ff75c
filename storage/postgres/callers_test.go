package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// OpenDB refuses settings that would break a promise later.
func TestOpenDBRefuses(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	for _, c := range []struct{ options, want string }{
		{"&standard_conforming_strings=off", "standard_conforming_strings is off"},
		{"&synchronous_commit=off", "synchronous_commit is off"},
	} {
		db := must(sql.Open("pgx", dsn+c.options))
		defer func() { _ = db.Close() }()
		if _, err := postgres.OpenDB(t.Context(), db, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	gone := must(sql.Open("pgx", "postgres://127.0.0.1:1/db?connect_timeout=1"))
	defer func() { _ = gone.Close() }()
	if _, err := postgres.OpenDB(t.Context(), gone, nil); !errors.Is(err, formsvc.ErrUnavailable) {
		t.Errorf("no server: error %v, want ErrUnavailable", err)
	}
	if _, err := postgres.OpenDB(t.Context(), nil, nil); err == nil {
		t.Error("no database was taken for one")
	}
}

// A strangeDriver accepts only what every driver accepts.
type strangeDriver struct{}

func (strangeDriver) Connect(context.Context) (driver.Conn, error) { return strangeConn{}, nil }
func (strangeDriver) Driver() driver.Driver                        { return nil }

type strangeConn struct{ driver.Conn }

func (strangeConn) Close() error                        { return nil }
func (strangeConn) Prepare(string) (driver.Stmt, error) { return strangeStmt{}, nil }

type strangeStmt struct{ driver.Stmt }

func (strangeStmt) Close() error  { return nil }
func (strangeStmt) NumInput() int { return 1 }

func TestOpenDBRefusesAnotherDriver(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(strangeDriver{})
	defer func() { _ = db.Close() }()
	if _, err := postgres.OpenDB(t.Context(), db, nil); err == nil || !strings.Contains(err.Error(), "jackc/pgx/v5/stdlib") {
		t.Errorf("error %v, want one that names the driver", err)
	}
}

// OpenDB works on a pool as sql.Open creates it, and leaves it open.
func TestOpenDBWorksOnDefaultPool(t *testing.T) {
	t.Parallel()
	db := must(sql.Open("pgx", postgrestest.DSN(t)))
	defer func() { _ = db.Close() }()
	for range 2 { // the second time, the schema exists
		s := must(postgres.OpenDB(t.Context(), db, nil))
		svc := must(formsvc.New(s, nil))
		if _, err := svc.Accounts.Ensure(t.Context(), `it's "a" \ tenant`); err != nil {
			t.Error(err)
		}
		noError(t, errors.Join(s.Close(), db.PingContext(t.Context())))
	}
}

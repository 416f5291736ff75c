package transfer_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/transfer"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A store is a store on either database.
type store interface {
	transfer.Store
	delivery.Queue
	Ping(ctx context.Context) error
	Close() error
}

// A database is a database that tests open and close.
type database struct {
	kind, dsn string
}

func newSQLite(t testing.TB) database {
	return database{"sqlite", filepath.Join(t.TempDir(), "forms.db")}
}

func newPostgres(t testing.TB) database { return database{"postgres", postgrestest.DSN(t)} }

func newDatabase(t testing.TB, kind string) database {
	if kind == "sqlite" {
		return newSQLite(t)
	}
	return newPostgres(t)
}

func ring(t testing.TB) *keyring.Keyring {
	t.Helper()
	k, err := keyring.New(keyring.Generate())
	must(t, err)
	return k
}

// try opens the database, either unchanged or as a server does.
func (d database) try(ctx context.Context, k *keyring.Keyring, asIs bool) (store, error) {
	if d.kind == "sqlite" {
		s, err := sqlite.Open(ctx, d.dsn, &sqlite.Options{Keyring: k, SkipMigrations: asIs})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := postgres.Open(ctx, d.dsn, &postgres.Options{Keyring: k, SkipMigrations: asIs, MaxConns: 6})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (d database) open(t testing.TB, asIs bool) store {
	t.Helper()
	s, err := d.try(t.Context(), ring(t), asIs)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// db returns a connection for reading the database, and for changes that no store makes.
func (d database) db(t testing.TB) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", d.dsn
	if d.kind == "sqlite" {
		driver, dsn = "sqlite", sqlite.DSN(d.dsn)
	}
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (d database) exec(t testing.TB, statement string) {
	t.Helper()
	if _, err := d.db(t).ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (d database) number(t testing.TB, query string) (n int64) {
	t.Helper()
	if err := d.db(t).QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// moved copies all data and closes what it opened.
func moved(t testing.TB, from, to database, opts *transfer.Options) (transfer.Report, error) {
	t.Helper()
	a, b := from.open(t, true), to.open(t, true)
	report, err := transfer.Copy(t.Context(), a, b, opts)
	must(t, errors.Join(a.Close(), b.Close()))
	return report, err
}

// kinds are the pairs of databases that data is moved between.
var kinds = [][2]string{{"sqlite", "postgres"}, {"postgres", "sqlite"}, {"sqlite", "sqlite"}, {"postgres", "postgres"}}

func eachPair(t *testing.T, do func(t *testing.T, from, to database)) {
	t.Helper()
	for _, pair := range kinds {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			t.Parallel()
			do(t, newDatabase(t, pair[0]), newDatabase(t, pair[1]))
		})
	}
}

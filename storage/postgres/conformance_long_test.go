//go:build long

package postgres_test

import (
	"database/sql"
	"testing"

	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/storagetest"
)

func TestConformanceUnprepared(t *testing.T) {
	t.Parallel()
	conformance(t, &postgres.Options{MaxConns: 4, Unprepared: true}, storagetest.Model)
}

func TestConformanceOnTheCallersDatabase(t *testing.T) {
	t.Parallel()
	onCallers := func(t testing.TB, dsn string) handle {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(4)
		s, err := postgres.OpenDB(t.Context(), db, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return handle{s, dsn}
	}
	schemas := &pool{t: t}
	storagetest.Run(t,
		func(t testing.TB) storagetest.Store { return onCallers(t, schemas.dsn(t)) },
		storagetest.Options{Only: []storagetest.Category{storagetest.Model}, Checks: 100})
}

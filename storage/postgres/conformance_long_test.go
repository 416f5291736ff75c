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
		db := must(sql.Open("pgx", dsn))
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(4)
		s := must(postgres.OpenDB(t.Context(), db, nil))
		t.Cleanup(func() { _ = s.Close() })
		return handle{s, dsn}
	}
	schemas := &pool{t: t}
	storagetest.Run(t,
		func(t testing.TB) storagetest.Store { return onCallers(t, schemas.dsn(t)) },
		storagetest.Options{Only: []storagetest.Category{storagetest.Model}, Checks: 100})
}

//go:build long

package postgres_test

import (
	"database/sql"
	"testing"

	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/storagetest"
)

func TestConformanceWithoutGroupCommit(t *testing.T) {
	t.Parallel()
	// Only new responses form groups.
	except := make(map[storagetest.Category]string)
	for _, c := range []storagetest.Category{
		storagetest.Comments, storagetest.Signatures, storagetest.Webhooks, storagetest.Ready, storagetest.Claims,
		storagetest.Outcomes, storagetest.Attempts, storagetest.Redelivery, storagetest.TestEvents, storagetest.Notices,
		storagetest.Digests, storagetest.Pruning, storagetest.Stats, storagetest.Audit, storagetest.Quota, storagetest.Files, storagetest.Sessions,
	} {
		except[c] = "it does the same with a response that was written in a group"
	}
	conformance(t, &postgres.Options{MaxConns: 4, GroupLimit: 1}, except)
}

func TestConformanceUnprepared(t *testing.T) {
	t.Parallel()
	conformance(t, &postgres.Options{MaxConns: 4, Unprepared: true}, nil)
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
		storagetest.Options{Reopen: func(t testing.TB, s storagetest.Store) storagetest.Store {
			h, ok := s.(handle)
			if !ok {
				t.Fatalf("got a %T", s)
			}
			return onCallers(t, h.dsn)
		}})
}

package httpx_test

import (
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// A backend is a store that the tests run on.
type backend struct {
	name string
	open func(testing.TB) formsvc.Store // opens an empty store, which the test's Cleanup closes
}

// backends lists all stores.
func backends() []backend {
	return []backend{{"memory", openMemory}, {"sqlite", openSQLite}, {"postgres", openPostgres}}
}

func openSQLite(tb testing.TB) formsvc.Store {
	tb.Helper()
	store, err := sqlite.Open(tb.Context(), filepath.Join(tb.TempDir(), "forms.db"), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func openPostgres(tb testing.TB) formsvc.Store {
	tb.Helper()
	store, err := postgres.Open(tb.Context(), postgrestest.DSN(tb), &postgres.Options{MaxConns: 4})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func openMemory(tb testing.TB) formsvc.Store {
	store := memory.New()
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store
}

//go:build long

package sqlite_test

import (
	"database/sql"
	"testing"

	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/storagetest"
)

func TestConformanceOnTheCallersDatabase(t *testing.T) {
	t.Parallel()
	conformance(t, func(t testing.TB, path string) handle {
		db, err := sql.Open("sqlite", sqlite.DSN(path))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		s, err := sqlite.OpenDB(t.Context(), db, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return handle{s, path}
	}, storagetest.Model)
}

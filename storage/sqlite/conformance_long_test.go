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
		db := must(sql.Open("sqlite", sqlite.DSN(path)))
		t.Cleanup(func() { _ = db.Close() })
		s := must(sqlite.OpenDB(t.Context(), db, nil))
		t.Cleanup(func() { _ = s.Close() })
		return handle{s, path}
	}, storagetest.Model)
}

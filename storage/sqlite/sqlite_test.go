package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/storagetest"
)

// handle is a store together with where its data is, to open it again.
type handle struct {
	*sqlite.Store
	path string
}

func open(t testing.TB, path string, opts *sqlite.Options) handle {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return handle{s, path}
}

func conformance(
	t *testing.T, open func(t testing.TB, path string) handle, except map[storagetest.Category]string,
) {
	storagetest.Run(t,
		func(t testing.TB) storagetest.Store { return open(t, filepath.Join(t.TempDir(), "forms ?#%.db")) },
		storagetest.Options{Except: except, Reopen: func(t testing.TB, s storagetest.Store) storagetest.Store {
			h, ok := s.(handle)
			if !ok {
				t.Fatalf("got a %T", s)
			}
			return open(t, h.path)
		}})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, func(t testing.TB, path string) handle { return open(t, path, nil) }, nil)
}

func TestConformanceWithoutGroupCommit(t *testing.T) {
	t.Parallel()
	conformance(t, func(t testing.TB, path string) handle {
		return open(t, path, &sqlite.Options{GroupLimit: 1})
	}, map[storagetest.Category]string{
		storagetest.Outcomes: "the same statements as in a group, and thousands of commits more",
	})
}

func TestConformanceOnTheCallersDatabase(t *testing.T) {
	t.Parallel()
	conformance(t, func(t testing.TB, path string) handle {
		db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Dir(path))+"/callers.db"+
			"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		s := sqlite.New(bun.NewDB(db, sqlitedialect.New()), nil)
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return handle{s, path}
	}, nil)
}

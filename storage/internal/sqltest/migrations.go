package sqltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// migrateTogether starts nodes at once, first on an empty database, and then on one that has a schema and no identity.
func migrateTogether(t *testing.T, d Database) {
	for range 2 {
		var wg sync.WaitGroup
		ids := make([]formsvc.ID, 4)
		for i := range ids {
			s := d.Open(t)
			wg.Go(func() {
				err := s.Migrate(t.Context())
				if err == nil {
					ids[i], err = s.Identity(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, id := range ids {
			if _, ok := formsvc.ParseID(string(id)); !ok || id != ids[0] {
				t.Errorf("nodes that start together found the identities %q", ids)
			}
		}
		list, err := d.Open(t).Migrations(t.Context())
		must(t, err)
		for _, m := range list {
			if m.AppliedAt.IsZero() {
				t.Errorf("migration %d is not applied", m.Version)
			}
		}
		_, err = d.DB.ExecContext(t.Context(), "DELETE FROM formsvc_identity")
		must(t, err)
		if _, err := d.Open(t).Identity(t.Context()); !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("without an identity: %v, want ErrNotFound", err)
		}
	}
}

func migrateNewer(t *testing.T, d Database) {
	s := d.Open(t)
	must(t, s.Migrate(t.Context()))
	list, err := s.Migrations(t.Context())
	must(t, err)
	_, err = d.DB.ExecContext(t.Context(), "INSERT INTO formsvc_schema (version, applied_at) VALUES (?, 0)", len(list)+1)
	must(t, err)
	if err := s.Migrate(t.Context()); !errors.Is(err, bunstore.ErrSchemaNewer) {
		t.Errorf("a newer schema: %v, want ErrSchemaNewer", err)
	}
}

// steps runs migrations, named from 0001_….sql on, as a store does.
func steps(t *testing.T, d Database, texts ...string) error {
	t.Helper()
	files, exists := make(fstest.MapFS), "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'formsvc_schema'"
	for i, text := range texts {
		files[fmt.Sprintf("%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	if d.DB.Dialect().Name() == dialect.PG {
		exists = "SELECT to_regclass('formsvc_schema') IS NOT NULL"
	}
	list, err := bunstore.Migrations(files, ".")
	must(t, err)
	return d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		return bunstore.Steps(ctx, list, tx.Tx, exists)
	})
}

// migrateFailing runs a migration that fails halfway, and then the fixed one.
func migrateFailing(t *testing.T, d Database) {
	const one = "CREATE TABLE one (a TEXT)"
	if err := steps(t, d, one, "CREATE TABLE two (a TEXT); INSERT INTO nowhere VALUES (1)"); err == nil {
		t.Fatal("a migration that fails was no error")
	}
	must(t, steps(t, d, one, "CREATE TABLE two (a TEXT)"))
	must(t, steps(t, d, one, "CREATE TABLE two (a TEXT)"))
}

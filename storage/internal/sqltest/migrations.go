package sqltest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

func migrateTogether(t *testing.T, d Database) {
	var wg sync.WaitGroup
	for range 4 {
		s := d.Open(t)
		wg.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := d.Open(t).Migrations(t.Context())
	must(t, err)
	for _, m := range list {
		if m.AppliedAt.IsZero() {
			t.Errorf("migration %d is not applied", m.Version)
		}
	}
}

// migrateIdentity has nodes start together on a database that an older release migrated.
func migrateIdentity(t *testing.T, d Database) {
	must(t, d.Open(t).Migrate(t.Context()))
	_, err := d.DB.ExecContext(t.Context(), "DELETE FROM formsvc_identity")
	must(t, err)
	if _, err := d.Open(t).Identity(t.Context()); !errors.Is(err, formsvc.ErrNotFound) {
		t.Errorf("before migrating: %v, want ErrNotFound", err)
	}
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
	var row struct {
		State, Peer string
		Since       int64
	}
	must(t, d.DB.NewSelect().Table("formsvc_identity").Column("state", "peer", "since").Scan(t.Context(), &row))
	if row.State != "active" || row.Peer != "" || row.Since <= 0 {
		t.Errorf("the row is %+v", row)
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

// migrateFailing runs a migration that is cut off half way, then the mended one.
func migrateFailing(t *testing.T, d Database) {
	inTx := func(ctx context.Context, do func(context.Context, bun.IConn) error) error {
		return d.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return do(ctx, tx.Tx) })
	}
	steps := func(second string) error {
		list, err := bunstore.Migrations(fstest.MapFS{
			"0001_one.sql": {Data: []byte("CREATE TABLE one (a TEXT)")},
			"0002_two.sql": {Data: []byte(second)},
		})
		must(t, err)
		return bunstore.Steps(t.Context(), list, inTx)
	}
	if err := steps("CREATE TABLE two (a TEXT); INSERT INTO nowhere VALUES (1)"); err == nil {
		t.Fatal("a migration that fails was no error")
	}
	must(t, steps("CREATE TABLE two (a TEXT)"))
	must(t, steps("CREATE TABLE two (a TEXT)"))
}

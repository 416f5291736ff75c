package sqltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/webhook/delivery"
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
		list := must(d.Open(t).Migrations(t.Context()))
		for _, m := range list {
			if m.AppliedAt.IsZero() {
				t.Errorf("migration %d is not applied", m.Version)
			}
		}
		must(d.DB.ExecContext(t.Context(), "DELETE FROM formsvc_identity"))
		if _, err := d.Open(t).Identity(t.Context()); !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("without an identity: %v, want ErrNotFound", err)
		}
	}
}

func migrateNewer(t *testing.T, d Database) {
	s := d.Open(t)
	noError(t, s.Migrate(t.Context()))
	list := must(s.Migrations(t.Context()))
	must(d.DB.ExecContext(t.Context(), "INSERT INTO formsvc_schema (version, applied_at, oldest) VALUES (?, 0, ?)", len(list)+1, len(list)))
	noError(t, s.Migrate(t.Context()))
	err := s.Ping(t.Context())
	if degraded, ok := errors.AsType[*formsvc.DegradedError](err); !ok || degraded.Components[0] != "schema" || !errors.Is(err, storage.ErrSchemaNewer) {
		t.Errorf("a newer schema that this release can work with: %v", err)
	}
	must(d.DB.ExecContext(t.Context(), "UPDATE formsvc_schema SET oldest = version"))
	if err := s.Migrate(t.Context()); !errors.Is(err, storage.ErrSchemaNewer) {
		t.Errorf("a newer schema: %v, want ErrSchemaNewer", err)
	}
}

// steps runs migrations as a store does. Their names come before those of the steps for both databases, which aren't run.
func steps(t *testing.T, d Database, texts ...string) error {
	t.Helper()
	files, exists := make(fstest.MapFS), "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'formsvc_schema'"
	for i, text := range texts {
		files[fmt.Sprintf("migrations/%04d_step.sql", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	if d.DB.Dialect().Name() == dialect.PG {
		exists = "SELECT to_regclass('formsvc_schema') IS NOT NULL"
	}
	list := bunstore.Migrations(files, d.DB.Dialect().Name() == dialect.SQLite)
	return d.DB.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		return bunstore.Steps(ctx, list[:len(texts)], tx.Tx, exists)
	})
}

// migrateFailing runs a migration that fails halfway, and then the fixed one.
func migrateFailing(t *testing.T, d Database) {
	const one = "CREATE TABLE one (a TEXT)"
	if err := steps(t, d, one, "CREATE TABLE two (a TEXT); INSERT INTO nowhere VALUES (1)"); err == nil {
		t.Fatal("a migration that fails was no error")
	}
	noError(t, steps(t, d, one, "CREATE TABLE two (a TEXT)"))
	noError(t, steps(t, d, one, "CREATE TABLE two (a TEXT)"))
}

// poisonedGroup has some of 40 responses make the database refuse a whole group.
func poisonedGroup(t *testing.T, d Database) {
	s := newScene(t, d)
	must(d.DB.ExecContext(t.Context(), d.Poison))
	var all sync.WaitGroup
	for i := range 40 {
		reference := fmt.Sprint("N", i)
		if i%10 == 5 {
			reference = "POISON"
		}
		r, change := s.response(reference)
		all.Go(func() {
			err := s.CreateResponse(t.Context(), r, 1, change)
			if (err != nil) != (reference == "POISON") {
				t.Errorf("%s: error %v", reference, err)
			}
			if _, gone := s.Response(t.Context(), r.Key()); (gone != nil) != (err != nil) {
				t.Errorf("%s: CreateResponse returned %v, and Response %v", reference, err, gone)
			}
		})
	}
	all.Wait()
	s.wantResponses(t, 36)
}

// pruneDeleted checks the tables, because the rows of a deleted webhook are never listed.
func pruneDeleted(t *testing.T, d Database) {
	s := newScene(t, d)
	const events = 7
	respond := func() {
		r, change := s.response("R" + string(s.id()))
		noError(t, s.CreateResponse(t.Context(), r, 1, change))
	}
	for range events {
		respond()
	}
	var outcomes []delivery.Outcome
	for _, c := range s.claim(t, s.now) {
		o := delivery.Outcome{ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: delivery.Failed}
		o.Attempt.StartedAt = s.now
		outcomes = append(outcomes, o)
	}
	must(s.Finish(t.Context(), outcomes))
	s.addWebhook(t)
	respond() // waits for both
	noError(t, s.DeleteWebhook(t.Context(), s.key(), formsvc.Change{}))
	wantRows := func(when string, want ...int) {
		t.Helper()
		for i, table := range []string{"formsvc_failing", "formsvc_deliveries", "formsvc_attempts", "formsvc_notices"} {
			if n, err := d.DB.NewSelect().Table(table).Count(t.Context()); err != nil || int(n) != want[i] {
				t.Errorf("%s: %d rows in %s, want %d (%v)", when, n, table, want[i], err)
			}
		}
	}
	wantRows("before", 0, events+2, events, events) // one of the deliveries is of the other webhook
	for n := 1; n > 0; {
		n = must(s.PruneEvents(t.Context(), time.Time{}, 3))
		if n > 6 {
			t.Errorf("a step deleted %d rows, want 3 deliveries and their attempts at most", n)
		}
	}
	wantRows("after", 0, 1, 0, events)
}

// auditOnlyGrows checks that the database itself refuses to change or delete an audit entry.
func auditOnlyGrows(t *testing.T, d Database) {
	s := newScene(t, d)
	entry := formsvc.AuditEntry{ID: s.id(), AccountID: s.account, Actor: "somebody", Action: formsvc.AuditKeyCreated, CreatedAt: s.now}
	noError(t, s.Commit(t.Context(), formsvc.Change{Audit: &entry}))
	for _, statement := range []string{
		"UPDATE formsvc_audit SET actor = 'nobody'", "DELETE FROM formsvc_audit", "UPDATE formsvc_audit SET created_at = 0 WHERE actor = 'somebody'",
	} {
		if _, err := d.DB.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: no error", statement)
		}
	}
	page := must(s.Audit(t.Context(), formsvc.AuditQuery{AccountID: s.account}))
	if len(page.Items) != 1 || page.Items[0].Actor != "somebody" || !page.Items[0].CreatedAt.Equal(s.now) {
		t.Errorf("the audit trail is %+v", page.Items)
	}
}

package sqltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

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

// migrateIdentity starts nodes at once on a database that an older release migrated.
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

// steps runs migrations, named from 0001_….sql on, as a store does.
func steps(t *testing.T, d Database, texts ...string) error {
	t.Helper()
	files, columns := make(fstest.MapFS), bunstore.ColumnsOfSQLite
	for i, text := range texts {
		files[fmt.Sprintf("%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	if d.DB.Dialect().Name() == dialect.PG {
		columns = bunstore.ColumnsOfPostgres
	}
	list, err := bunstore.Migrations(files, ".")
	must(t, err)
	return bunstore.Steps(t.Context(), list, columns, func(ctx context.Context, do func(context.Context, bun.IConn) error) error {
		return d.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return do(ctx, tx.Tx) })
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

const firstStep = "CREATE TABLE formsvc_one (\n  a TEXT,\n  b TEXT,\n  UNIQUE (a)\n);\n"

// wantOther fails the test unless those steps are refused as another build's, with the
// reason, and the database is unchanged.
func wantOther(t *testing.T, d Database, wrong string, texts ...string) {
	t.Helper()
	before := tableNames(t, d)
	err := steps(t, d, texts...)
	if !errors.Is(err, bunstore.ErrSchemaOther) || !strings.Contains(err.Error(), wrong) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("steps of another build: %v, want ErrSchemaOther and %q", err, wrong)
	}
	if after := tableNames(t, d); !slices.Equal(after, before) {
		t.Errorf("the columns are %v, and were %v", after, before)
	}
}

// tableNames returns the columns of formsvc's tables.
func tableNames(t *testing.T, d Database) (names []string) {
	t.Helper()
	columns := bunstore.ColumnsOfSQLite
	if d.DB.Dialect().Name() == dialect.PG {
		columns = bunstore.ColumnsOfPostgres
	}
	rows, err := d.DB.QueryContext(t.Context(), strings.ReplaceAll(columns, "?", "??"))
	must(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var table, column string
		must(t, rows.Scan(&table, &column))
		names = append(names, table+"."+column)
	}
	must(t, rows.Err())
	slices.Sort(names)
	return names
}

// migrateEdited has a first step whose text differs from the applied one only in what the
// database doesn't show.
func migrateEdited(t *testing.T, d Database) {
	const second = "CREATE TABLE formsvc_two (\n  a TEXT\n);\n"
	must(t, steps(t, d, firstStep))
	must(t, steps(t, d, strings.ReplaceAll(firstStep, "\n", "\r\n"))) // line endings don't count
	wantOther(t, d, "step 1 (step) has the checksum", firstStep+"-- edited\n", second)
	must(t, steps(t, d, firstStep, second))
}

// migrateUnrecorded has databases from before checksums were recorded: one with these
// steps, and one of a build whose steps made fewer columns and tables.
func migrateUnrecorded(t *testing.T, d Database) {
	const schema = "CREATE TABLE formsvc_schema (version INTEGER PRIMARY KEY, applied_at BIGINT NOT NULL)"
	for _, statement := range []string{schema, "INSERT INTO formsvc_schema VALUES (1, 1000000)", firstStep} {
		_, err := d.DB.ExecContext(t.Context(), statement)
		must(t, err)
	}
	const two = "CREATE TABLE formsvc_two (\n  a TEXT\n);\n"
	wantOther(t, d, "step 1 (step) lacks the table formsvc_two", firstStep+two)
	wantOther(t, d, "step 1 (step) lacks the column c of the table formsvc_one", strings.Replace(firstStep, "  b TEXT", "  b TEXT,\n  c TEXT", 1))
	wantOther(t, d, "step 1 (step) lacks the column c of the table formsvc_one", firstStep+"ALTER TABLE formsvc_one ADD COLUMN c TEXT;\n")
	must(t, steps(t, d, firstStep, two))
	wantOther(t, d, "step 1 (step) has the checksum", firstStep+"-- edited\n", two) // now the checksum is recorded
}

// migrateAll compares what the steps of the store create, by their text, with the schema.
func migrateAll(t *testing.T, d Database) {
	s := d.Open(t)
	must(t, s.Migrate(t.Context()))
	want := tableNames(t, d)
	_, err := d.DB.ExecContext(t.Context(), "UPDATE formsvc_schema SET sha256 = NULL")
	must(t, err)
	must(t, s.Migrate(t.Context()))
	for _, name := range want {
		table, column, _ := strings.Cut(name, ".")
		if table == "formsvc_schema" {
			continue
		}
		list, err := s.Migrations(t.Context())
		must(t, err)
		found := slices.ContainsFunc(list, func(m bunstore.Migration) bool { return slices.Contains(bunstore.Made(m), name) })
		if !found {
			t.Errorf("no step says that it makes the column %s of %s", column, table)
		}
	}
}

// Released fails the test unless the migrations of a directory match its file SHA256SUMS,
// which sha256sum -c also reads: a released step must never change.
func Released(t *testing.T, dir string) {
	t.Helper()
	list, err := bunstore.Migrations(os.DirFS(dir), ".")
	must(t, err)
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS")) //nolint:gosec // a directory of this tree
	must(t, err)
	for _, m := range list {
		line := fmt.Sprintf("%s  %04d_%s.sql\n", m.SHA256, m.Version, m.Name)
		if !strings.Contains(string(sums), line) {
			t.Errorf("%s/SHA256SUMS lacks the line below. If the step is new, add it. If it was released, undo the edit, "+
				"since databases that have the step are refused, and write a new step:\n%s", dir, line)
		}
	}
	if n := strings.Count(string(sums), "\n"); n != len(list) {
		t.Errorf("%s/SHA256SUMS has %d lines, and there are %d steps", dir, n, len(list))
	}
}

package postgres_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// A pool lends schemas that are migrated and have no other rows. Migrating a schema takes longer than most tests of the conformance
// suite.
type pool struct {
	t    *testing.T // the schemas are dropped when it ends
	mu   sync.Mutex
	idle []string
}

// dsn returns the data source name of a schema that no other test uses until t ends. A failed test's schema is not lent again.
func (p *pool) dsn(t testing.TB) string {
	t.Helper()
	dsn := p.take(t)
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		exec(t, dsn, empty)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle = append(p.idle, dsn)
	})
	return dsn
}

func (p *pool) take(t testing.TB) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		dsn := p.idle[last]
		p.idle = p.idle[:last]
		return dsn
	}
	dsn := postgrestest.DSN(p.t)
	s, err := postgres.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	exec(t, dsn, keepInitialRows)
	return dsn
}

// What the migrations insert goes to tables of its own.
const keepInitialRows = `DO $$
	DECLARE name text; filled boolean;
	BEGIN
		FOR name IN SELECT relname FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind = 'r' LOOP
			EXECUTE format('SELECT EXISTS (TABLE %I)', name) INTO filled;
			IF filled THEN
				EXECUTE format('CREATE TABLE %I AS TABLE %I', 'initial_' || name, name);
			END IF;
		END LOOP;
	END $$`

const empty = `DO $$
	DECLARE name text; filled boolean; list text;
	BEGIN
		FOR name IN SELECT relname FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind = 'r'
			AND NOT starts_with(relname, 'initial_') LOOP
			EXECUTE format('SELECT EXISTS (TABLE %I)', name) INTO filled;
			IF filled THEN
				list := concat_ws(', ', list, quote_ident(name));
			END IF;
		END LOOP;
		EXECUTE 'TRUNCATE ' || list || ' RESTART IDENTITY CASCADE';
		FOR name IN SELECT relname FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind = 'r'
			AND starts_with(relname, 'initial_') LOOP
			EXECUTE format('INSERT INTO %I TABLE %I', substr(name, length('initial_') + 1), name);
		END LOOP;
	END $$`

func exec(t testing.TB, dsn, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	// The test's own context has ended when it cleans up.
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

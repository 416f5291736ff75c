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
	idle []schema
}

// A schema is a migrated schema, with a connection that empties it.
type schema struct {
	dsn string
	db  *sql.DB
}

// dsn returns the data source name of a schema that no other test uses until t ends. A failed test's schema is not lent again.
func (p *pool) dsn(t testing.TB) string {
	t.Helper()
	lent := p.take(t)
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		exec(t, lent.db, empty)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle = append(p.idle, lent)
	})
	return lent.dsn
}

func (p *pool) take(t testing.TB) schema {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		lent := p.idle[last]
		p.idle = p.idle[:last]
		return lent
	}
	dsn := postgrestest.DSN(p.t)
	s := must(postgres.Open(t.Context(), dsn, nil))
	_ = s.Close()
	db := must(sql.Open("pgx", dsn))
	p.t.Cleanup(func() { _ = db.Close() })
	exec(t, db, keepInitialRows)
	return schema{dsn, db}
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

// Few rows are deleted faster than tables are truncated. Only accounts and campaigns are referenced by other tables. A trigger counts deleted
// responses in formsvc_statuses.
const empty = `DO $$
	DECLARE name text; filled boolean;
	BEGIN
		FOR name IN SELECT relname FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind = 'r'
			AND NOT starts_with(relname, 'initial_')
			ORDER BY CASE relname WHEN 'formsvc_statuses' THEN 3 WHEN 'formsvc_accounts' THEN 2 WHEN 'formsvc_campaigns' THEN 1 ELSE 0 END LOOP
			IF name = 'formsvc_audit' THEN -- append-only
				EXECUTE 'SELECT EXISTS (TABLE formsvc_audit)' INTO filled;
				IF filled THEN
					TRUNCATE formsvc_audit;
				END IF;
			ELSE
				EXECUTE format('DELETE FROM %I', name);
			END IF;
		END LOOP;
		FOR name IN SELECT relname FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind = 'r'
			AND starts_with(relname, 'initial_') LOOP
			EXECUTE format('INSERT INTO %I TABLE %I', substr(name, length('initial_') + 1), name);
		END LOOP;
	END $$`

func exec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	// The test's own context has ended when it cleans up.
	must(db.ExecContext(context.Background(), statement))
}

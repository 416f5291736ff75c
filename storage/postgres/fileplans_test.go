//go:build long

package postgres

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/storage/internal/sqltest"
)

// The cost of statements about files doesn't depend on how many files others have, in the
// store's sessions and in those of a caller. It doesn't run in parallel with other tests,
// like TestPlans.
func TestFilePlans(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after string // run on the empty tables and on the full ones
		callers       bool
	}{
		{name: "never analyzed"},
		{name: "analyzed when empty", before: analyzeFiles},
		{name: "analyzed", after: analyzeFiles},
		{name: "never analyzed, the caller's session", callers: true},
		{name: "analyzed when empty, the caller's session", before: analyzeFiles, callers: true},
		{name: "analyzed, the caller's session", after: analyzeFiles, callers: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlans(t, c.callers)
			for _, table := range []string{"files", "responses"} {
				p.exec("ALTER TABLE formsvc_" + table + " SET (autovacuum_enabled = off)")
			}
			p.exec("TRUNCATE formsvc_accounts CASCADE")
			p.exec(c.before)
			pool, err := sql.Open("pgx", p.dsn+"&default_query_exec_mode=exec")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pool.Close() }()
			db := bun.NewDB(pool, pgdialect.New())
			sqltest.FillFiles(t, db)
			p.exec(c.after)
			open := func(db *bun.DB) sqltest.Store { return New(db, nil) }
			sqltest.FileStatements(t, db, open, func(call, statement string) {
				plan := p.explainText(call, statement)
				if rows := plan.rows("formsvc_files"); rows > sqltest.MostFiles {
					t.Errorf("%s looks at %v files:\n%s\n%s", call, rows, statement, strings.Join(plan.lines(""), "\n"))
				}
			})
		})
	}
}

const analyzeFiles = "ANALYZE formsvc_files, formsvc_responses"

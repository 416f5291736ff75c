//go:build long

package postgres

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/storage/internal/sqltest"
)

// The cost of an export's pages doesn't depend on the number of responses, in the store's
// sessions and in those of a caller. It doesn't run in parallel with other tests, like
// TestPlans.
func TestResponsePlans(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after string // run on the empty tables and on the full ones
		callers       bool
	}{
		{name: "never analyzed"},
		{name: "analyzed when empty", before: analyzeResponses},
		{name: "analyzed", after: analyzeResponses},
		{name: "analyzed, the caller's session", after: analyzeResponses, callers: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlans(t, c.callers)
			p.exec("ALTER TABLE formsvc_responses SET (autovacuum_enabled = off)")
			p.exec("TRUNCATE formsvc_accounts CASCADE")
			p.exec(c.before)
			pool, err := sql.Open("pgx", p.dsn+"&default_query_exec_mode=exec")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pool.Close() }()
			db := bun.NewDB(pool, pgdialect.New())
			sqltest.FillResponses(t, db)
			p.exec(c.after)
			open := func(db *bun.DB) sqltest.Store { return New(db, nil) }
			sqltest.ResponseStatements(t, db, open, func(call, statement string) {
				plan := p.explainText(call, statement)
				if rows := plan.rows("formsvc_responses"); rows > sqltest.MostResponses {
					t.Errorf("%s looks at %v responses:\n%s\n%s", call, rows, statement, strings.Join(plan.lines(""), "\n"))
				}
			})
			plan := p.explainText("reading together", readingOf(t, pool, 64))
			if rows := plan.rows("formsvc_responses"); rows != 64 {
				t.Errorf("reading 64 responses looks at %v:\n%s", rows, strings.Join(plan.lines(""), "\n"))
			}
		})
	}
}

// readingOf returns selectResponses for n responses of the database.
func readingOf(t *testing.T, db *sql.DB, n int) string {
	t.Helper()
	statement := selectResponses
	for i, column := range []string{"campaign_id", "id", "account_id"} {
		var keys string
		query := "SELECT array_agg(" + column + ")::text FROM (SELECT * FROM formsvc_responses ORDER BY campaign_id, id LIMIT $1) AS r"
		if err := db.QueryRowContext(t.Context(), query, n).Scan(&keys); err != nil {
			t.Fatal(err)
		}
		statement = strings.Replace(statement, fmt.Sprintf("$%d", i+1), "'"+keys+"'", 1)
	}
	return statement
}

const analyzeResponses = "ANALYZE formsvc_responses"

//go:build long

package sqlite_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/sqltest"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// Pages of lists, filters and exports are read by walking an index from the position
// where they begin.
func TestResponsePlans(t *testing.T) {
	t.Parallel()
	for name, analyze := range map[string]struct{ empty, full bool }{
		"never analyzed": {}, "analyzed when empty": {empty: true}, "analyzed": {full: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := raw(t, filepath.Join(t.TempDir(), "forms.db"))
			exec := func(query string) {
				t.Helper()
				if _, err := db.ExecContext(t.Context(), query); err != nil {
					t.Fatal(err)
				}
			}
			if err := sqlite.New(db, nil).Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if analyze.empty {
				exec("ANALYZE")
			}
			sqltest.FillResponses(t, db)
			if analyze.full {
				exec("ANALYZE")
			}
			open := func(db *bun.DB) sqltest.Store { return sqlite.New(db, nil) }
			sqltest.ResponseStatements(t, db, open, func(call, statement string) {
				for _, step := range sqlite.Steps(t, db.DB, statement) {
					if !walkAlong.MatchString(step) {
						t.Errorf("%s: %s\n%s", call, step, statement)
					}
				}
			})
		})
	}
}

// walkAlong matches the steps allowed in a plan. Only rows that an earlier step has
// chosen are scanned or sorted. With statistics SQLite also skips from campaign to
// campaign if hardly any identifier is so late.
var walkAlong = regexp.MustCompile(`^(` + strings.Join([]string{
	`SEARCH r USING INDEX formsvc_responses_campaign \((campaign_id=\?|ANY\(campaign_id\))( AND id[<=>]\?){0,2}\)`,
	`SEARCH r USING INDEX formsvc_responses_status \(campaign_id=\? AND \(status,id\)>\(\?,\?\) AND \(status,id\)<\(\?,\?\)\)`,
	`SEARCH r USING INDEX formsvc_responses_status \(campaign_id=\? AND status=\?( AND id[<>]\?){1,2}\)`,
	`SEARCH n USING PRIMARY KEY \(campaign_id=\?( AND status=\?)?\)`, `(CORRELATED )?SCALAR SUBQUERY \d+`, `SCAN CONSTANT ROW`,
	`SEARCH r USING INDEX formsvc_responses_changed \(campaign_id=\? AND updated_at>\?\)`,
	`CO-ROUTINE (r|found)`, `SCAN (r|found)`, `LIST SUBQUERY \d+`, `COMPOUND QUERY`, `LEFT-MOST SUBQUERY`, `UNION ALL`,
	`USE TEMP B-TREE FOR ORDER BY`,
}, "|") + `)$`)

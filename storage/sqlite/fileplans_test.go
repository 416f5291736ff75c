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

// Statements about files use look-ups whose cost doesn't depend on how many files others
// have.
func TestFilePlans(t *testing.T) {
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
			sqltest.FillFiles(t, db)
			if analyze.full {
				exec("ANALYZE")
			}
			open := func(db *bun.DB) sqltest.Store { return sqlite.New(db, nil) }
			sqltest.FileStatements(t, db, open, func(call, statement string) {
				for _, step := range sqlite.Steps(t, db.DB, statement) {
					if !fileLookUp.MatchString(step) {
						t.Errorf("%s: %s\n%s", call, step, statement)
					}
				}
			})
		})
	}
}

// fileLookUp matches the steps allowed in a plan. The only scan is AllFiles from the
// first file on.
var fileLookUp = regexp.MustCompile(`^(` + strings.Join([]string{
	`SEARCH \w+ USING (COVERING )?INDEX formsvc_(files|comments|signatures)_response \(campaign_id=\? AND response_id=\?( AND id[<>]\?)?\)`,
	`SEARCH f USING INDEX sqlite_autoindex_formsvc_files_1 \(id[=>]\?\)`,
	`SCAN f USING INDEX sqlite_autoindex_formsvc_files_1`,
	`SEARCH \w+ USING INDEX formsvc_responses_campaign \(campaign_id=\? AND id=\?\)`,
	`(CORRELATED )?SCALAR SUBQUERY \d+`, `SCAN \d+-ROW VALUES CLAUSE`,
}, "|") + `)$`)

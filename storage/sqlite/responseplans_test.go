package sqlite_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/sqltest"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// TestResponsePlans holds the pages of an export to walks along one index from
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

// walkAlong matches the one step that may be in a plan.
var walkAlong = regexp.MustCompile(
	`^SEARCH r USING INDEX formsvc_responses_campaign \(campaign_id=\?( AND id[<>]\?){0,2}\)$`)

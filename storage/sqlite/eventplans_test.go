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

// The settings pages use index look-ups whose cost doesn't depend on the number of
// events.
func TestEventPlans(t *testing.T) {
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
			open := func(db *bun.DB) sqltest.Store { return sqlite.New(db, nil) }
			store := open(db)
			if err := store.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if analyze.empty {
				exec("ANALYZE")
			}
			scene := sqltest.FillEvents(t, db, store)
			if analyze.full {
				exec("ANALYZE")
			}
			scene.EventStatements(t, db, open, func(call, statement string) {
				for _, step := range sqlite.Steps(t, db.DB, statement) {
					if !eventLookUp.MatchString(step) {
						t.Errorf("%s: %s\n%s", call, step, statement)
					}
				}
			})
		})
	}
}

// eventLookUp matches the steps allowed in a plan.
var eventLookUp = regexp.MustCompile(`^(` + strings.Join([]string{
	`SEARCH formsvc_events USING INDEX sqlite_autoindex_formsvc_events_1 \(id=\?\)`,
	`SEARCH s USING INDEX sqlite_autoindex_formsvc_sessions_2 \(hash=\?\)`,
	`SEARCH d USING PRIMARY KEY \(webhook_id=\?( AND id>\?)?\)`,
	`SEARCH t USING PRIMARY KEY \(delivery_id=\?\)`,
	`SEARCH w USING INDEX sqlite_autoindex_formsvc_webhooks_1 \(id=\?\)`,
	`SCALAR SUBQUERY \d+`,
}, "|") + `)$`)

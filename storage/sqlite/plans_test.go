//go:build long

package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// The queue's statements use look-ups whose cost doesn't depend on the backlog of an
// endpoint, whatever statistics SQLite has.
func TestPlans(t *testing.T) {
	t.Parallel()
	const (
		rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
		some = "INSERT INTO formsvc_deliveries "
	)
	for name, before := range map[string]string{
		"never analyzed":      "",
		"analyzed when empty": "ANALYZE",
		"analyzed with a row for each endpoint": some + rows +
			"SELECT CAST('w' || i AS BLOB), CAST(i AS BLOB), x'ee', 1, 0, 0, 0, 0, 0, i, i, i FROM n; ANALYZE",
		"analyzed with one endpoint": some + rows + "SELECT x'aa', CAST(i AS BLOB), x'ee', 1, 0, 0, 0, 0, 0, i, i, i FROM n; ANALYZE",
		"analyzed when all was done": some + rows + "SELECT x'aa', CAST(i AS BLOB), x'ee', 1, 0, 0, 1, 0, 0, i, i, i FROM n; ANALYZE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := must(Open(t.Context(), filepath.Join(t.TempDir(), "forms.db"), nil))
			defer func() { _ = s.Close() }()
			noError(t, s.tx.Run(t.Context(), func(_ context.Context, c bun.IConn) error {
				_, err := c.ExecContext(t.Context(), before)
				return err
			}))
			for name, statement := range map[string]string{
				"Ready": ready, "Claim": claimDue, "Claim with the late ones first": claimLateDue,
				"Finish": finishDelivery, "attempt": insertAttempt, "notice": insertNotice, "failing": addFailing,
				"Events": lookAtEvents, "AllEvents": lookAtAllEvents, "RecentEvents": lookBackAtEvents,
			} {
				for _, step := range Steps(t, s.owned[1], parameter.ReplaceAllString(statement, "1")) {
					orders := step == "USE TEMP B-TREE FOR ORDER BY" && name == "Ready" // of the endpoints it has found
					if !lookUp.MatchString(step) && !orders {
						t.Errorf("%s: %s", name, step)
					}
				}
			}
		})
	}
}

// lookUp matches the steps allowed in a plan. Scans are only of rows that an earlier step
// has chosen, and of the start of the index of pending deliveries.
var lookUp = regexp.MustCompile(`^(` + strings.Join([]string{
	`SEARCH (d|formsvc_deliveries) USING PRIMARY KEY \(webhook_id=\? AND id=\?\)`,
	`SEARCH d USING COVERING INDEX formsvc_deliveries_due \(webhook_id=\? AND kind=\? AND due_at<\?\)`,
	`SEARCH d USING COVERING INDEX formsvc_deliveries_due \(webhook_id>\?\)`,
	`SCAN d USING COVERING INDEX formsvc_deliveries_due`,
	`SEARCH (w|e)( EXISTS)? USING( COVERING)? INDEX sqlite_autoindex_formsvc_(webhooks|events)_1 \(id=\?\)`,
	`SEARCH e USING INDEX formsvc_events_account \(account_id=\? AND rowid[<>]\?( AND rowid<\?)?\)`,
	`SEARCH e USING INTEGER PRIMARY KEY \(rowid>\?( AND rowid<\?)?\)`,
	`SCAN (j|json_each) VIRTUAL TABLE INDEX 1:`, `SCAN [po]`, `SCAN \(subquery-\d+\)`, `SCAN (\d+ )?CONSTANT ROWS?`, `MATERIALIZE o`,
	`CO-ROUTINE .*`, `SETUP`, `RECURSIVE STEP`, `(CORRELATED )?(SCALAR|LIST) SUBQUERY \d+`, `COMPOUND QUERY`,
	`LEFT-MOST SUBQUERY`, `UNION ALL`, `MERGE \(UNION ALL\)`, `LEFT`, `RIGHT`,
}, "|") + `)$`)

var parameter = regexp.MustCompile(`\?\d?`)

// NewOn returns a store on a database with hooks.
func NewOn(db *bun.DB) *Store {
	o := (*Options)(nil).withDefaults()
	return newStore(&poolWriter{db: db.DB}, bunstore.NewPrepared(db.DB), db, &o)
}

// Steps returns the plan of a statement.
func Steps(t *testing.T, db *sql.DB, statement string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement)
	noError(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		noError(t, rows.Scan(&id, &parent, &unused, &detail))
		list = append(list, detail)
	}
	noError(t, rows.Err())
	return list
}

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

// The cost of the settings pages doesn't depend on the number of events, in the store's
// sessions and in those of a caller. It doesn't run in parallel with other tests, like
// TestPlans.
func TestEventPlans(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after string // run on the empty tables and on the full ones
		callers       bool
	}{
		{name: "never analyzed"},
		{name: "analyzed when empty", before: analyzeEvents},
		{name: "analyzed", after: analyzeEvents},
		{name: "never analyzed, the caller's session", callers: true},
		{name: "analyzed when empty, the caller's session", before: analyzeEvents, callers: true},
		{name: "analyzed, the caller's session", after: analyzeEvents, callers: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlans(t, c.callers)
			for _, table := range []string{"responses", "links", "sessions", "keys"} {
				p.exec("ALTER TABLE formsvc_" + table + " SET (autovacuum_enabled = off)")
			}
			p.exec("TRUNCATE formsvc_accounts, formsvc_events, formsvc_webhooks CASCADE")
			p.exec(c.before)
			pool, err := sql.Open("pgx", p.dsn+"&default_query_exec_mode=exec")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pool.Close() }()
			db := bun.NewDB(pool, pgdialect.New())
			open := func(db *bun.DB) sqltest.Store { return New(db, nil) }
			e := sqltest.FillEvents(t, db, open(db))
			p.exec(c.after)
			look := func(call string, plan *plan) {
				t.Helper()
				for _, table := range []string{"events", "deliveries", "attempts", "links", "sessions", "keys"} {
					if rows := plan.rows("formsvc_" + table); rows > sqltest.MostEvents {
						t.Errorf("%s looks at %v rows of %s:\n%s", call, rows, table, strings.Join(plan.lines(""), "\n"))
					}
				}
			}
			e.EventStatements(t, db, open, func(call, statement string) { look(call, p.explainText(call, statement)) })

			var b *backend
			var uses []string
			for _, id := range e.Keys[:10] {
				uses = append(uses, fmt.Sprintf(`["%s","%s",1]`, e.Account, id))
			}
			p.prepare("look back", b.Statements().LookBackAtEvents,
				fmt.Sprintf("'%s', 9223372036854775807, 9223372036854775807, 20", e.Account))
			p.prepare("look at the whole feed", b.Statements().LookAtAllEvents, "'', 0, 0, 20")
			p.prepare("read the whole feed", b.Statements().ReadAllEvents, "'', 0, 0, 0, 9223372036854775807, 65535, ''")
			p.prepare("look at one response", b.Statements().LookAtEventsAbout,
				fmt.Sprintf("'%s', '%s', '%s', '%s', 20", e.Account, e.Campaign, e.Response, e.MadeWith))
			p.prepare("use keys", b.Statements().UseKeys, "'["+strings.Join(uses, ",")+"]'")
			look("look at one response", p.explain("look at one response"))
			if !c.callers || c.after != "" { // otherwise the server expects an account to be a small part of a small table
				look("look back", p.explain("look back"))
				look("look at the whole feed", p.explain("look at the whole feed"))
				look("read the whole feed", p.explain("read the whole feed"))
			}
			if !c.callers { // where reading all keys once a minute may be cheaper
				look("use keys", p.explain("use keys"))
			}
		})
	}
}

const analyzeEvents = "ANALYZE formsvc_events, formsvc_deliveries, formsvc_attempts, formsvc_links, formsvc_sessions, " +
	"formsvc_keys, formsvc_webhooks"

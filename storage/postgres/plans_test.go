//go:build long

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// backlog is the number of deliveries of one endpoint, which must not matter to the
// statements of the queue.
const backlog = 40_000

// mostRows is up to how many rows of deliveries a statement may read: it is asked for 4
// of each of 30 endpoints.
const mostRows = 500

// The cost of the queue's statements doesn't depend on the backlog of one endpoint,
// whatever statistics the server has. It doesn't run in parallel with other tests: if
// many tables are created and dropped, the server discards its plans and makes better
// ones.
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		name     string
		before   string // run on the empty tables
		analyzed bool   // and VACUUM ANALYZE after it
		planned  bool   // plan the statements then, and never again
		callers  bool   // in a caller's session, without prepared statements
	}{
		{name: "never analyzed"},
		{name: "analyzed when empty", before: analyze},
		{name: "analyzed with a row for each endpoint", before: few + analyze},
		{name: "analyzed when all was done", before: done + analyze},
		{name: "analyzed when a backlog was done", before: drained, analyzed: true},
		{name: "analyzed when all was deleted", before: emptied + analyze},
		{name: "planned when empty", before: analyze, planned: true},
		{name: "planned with a row for each endpoint", before: few + analyze, planned: true},
		{name: "planned when all was done", before: done + analyze, planned: true},
		{name: "planned when a backlog was done", before: drained, analyzed: true, planned: true},
		{name: "planned when all was deleted", before: emptied + analyze, planned: true},
		{name: "never analyzed, the caller's session", callers: true},
		{name: "analyzed when empty, the caller's session", before: analyze, callers: true},
		{name: "analyzed with a row for each endpoint, the caller's session", before: few + analyze, callers: true},
		{name: "analyzed when all was done, the caller's session", before: done + analyze, callers: true},
		{name: "analyzed when a backlog was done, the caller's session", before: drained, analyzed: true, callers: true},
		{name: "analyzed when all was deleted, the caller's session", before: emptied + analyze, callers: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlans(t, c.callers)
			p.exec(c.before)
			if c.analyzed {
				p.exec("VACUUM ANALYZE formsvc_deliveries")
			}
			if c.planned {
				for name := range p.statements {
					p.explain(name)
				}
			}
			p.exec(fill)
			for name := range p.statements {
				plan := p.explain(name)
				if rows := plan.rows("formsvc_deliveries"); rows > mostRows {
					t.Errorf("%s looks at %v deliveries:\n%s", name, rows, strings.Join(plan.lines(""), "\n"))
				}
			}
		})
	}
}

const (
	analyze = "; ANALYZE formsvc_deliveries, formsvc_webhooks, formsvc_events, formsvc_notices, formsvc_failing"

	// endpoint is the identifier of the eth endpoint; the first one has the backlog.
	endpoint = "md5('endpoint ' || e)::uuid"

	few = `INSERT INTO formsvc_deliveries SELECT ` + endpoint + `, md5('few ' || e)::uuid, md5('event')::uuid,
  1, 1000, 0, 0, -62135596800000000, 100, 0, 0, 0 FROM generate_series(1, 30) AS e`

	// done are finished deliveries, most of them of the first endpoint.
	done = `INSERT INTO formsvc_deliveries
SELECT ` + endpoint + `, md5('done ' || e || ' ' || n)::uuid, md5('event')::uuid, 1, 0, 2, 0, 0, 100, 0, 1, 1
FROM generate_series(1, 30) AS e CROSS JOIN LATERAL generate_series(1, CASE WHEN e = 1 THEN BACKLOG ELSE 20 END) AS n`

	// drained is a backlog that was delivered.
	drained = fill + `; UPDATE formsvc_deliveries SET id = md5(id::text)::uuid, state = 1`

	// emptied is a backlog that was deleted, and not vacuumed yet.
	emptied = fill + `; DELETE FROM formsvc_deliveries`

	// fill makes half of the backlog due and half of it retries for later, beside
	// 29 endpoints with 20 deliveries of each kind.
	fill = `INSERT INTO formsvc_deliveries
SELECT ` + endpoint + `, md5(e || ' ' || kind || ' ' || n)::uuid, md5('event ' || n % 100)::uuid, 1,
  CASE WHEN e = 1 AND kind = 1 THEN 1000000 ELSE 1000 END + n, 0, 0, -62135596800000000, 100, kind, 0, 0
FROM generate_series(1, 30) AS e CROSS JOIN generate_series(0, 2) AS kind
CROSS JOIN LATERAL generate_series(1, CASE WHEN e = 1 AND kind < 2 THEN BACKLOG ELSE 20 END) AS n`
)

// plans explains statements in one session with one schema.
type plans struct {
	*testing.T
	dsn        string
	conn       *pgx.Conn
	statements map[string]string // by name, with their arguments as SQL
}

func newPlans(t *testing.T, callers bool) *plans {
	t.Helper()
	dsn := postgrestest.DSN(t)
	store := must(Open(t.Context(), dsn, &Options{NoListen: true, MaxConns: 1}))
	t.Cleanup(func() { _ = store.Close() })
	conn := must(pgx.Connect(t.Context(), dsn))
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	p := &plans{T: t, dsn: dsn, conn: conn, statements: make(map[string]string)}
	if callers {
		p.exec("SET plan_cache_mode = force_custom_plan")
	} else if err := planFixed(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"deliveries", "webhooks", "events", "attempts", "notices", "failing", "accounts"} {
		// The server must not analyze during the test.
		p.exec("ALTER TABLE formsvc_" + table + " SET (autovacuum_enabled = off)")
	}
	p.exec(`INSERT INTO formsvc_accounts (id, name, contact, created_at) VALUES (md5('account')::uuid, 'a', '', 0)`)
	p.exec(`INSERT INTO formsvc_webhooks SELECT ` + endpoint + `, md5('account')::uuid, '', 1, NULL, '', '', 0, '', false, 1, 0, 0
FROM generate_series(1, 30) AS e`)
	p.exec(`INSERT INTO formsvc_events (id, account_id, campaign_id, response_id, xact, type, created_at, payload)
SELECT md5('event ' || n)::uuid, md5('account')::uuid, md5('')::uuid, md5('')::uuid, 1, 1, 0, ''::bytea FROM generate_series(0, 99) AS n`)

	p.exec("CREATE FUNCTION endpoints() RETURNS text[] LANGUAGE sql AS $$ SELECT array_agg(" + endpoint +
		"::text ORDER BY e) FROM generate_series(1, 30) AS e $$")
	p.exec("CREATE FUNCTION deliveries() RETURNS text[] LANGUAGE sql AS $$ SELECT array_agg(md5(e || ' 0 1') " +
		"ORDER BY e) FROM generate_series(1, 30) AS e $$")

	p.prepare("Ready", ready, "500000")
	p.prepare("Claim", claimDue, "endpoints(), array_fill(4, ARRAY[30]), array_fill(false, ARRAY[30]), 500000, 900000")
	p.prepare("Claim with the late ones first", claimDue,
		"endpoints(), array_fill(4, ARRAY[30]), array_fill(true, ARRAY[30]), 500000, 900000")
	// Every endpoint has one delivery that fails permanently, which writes to all tables.
	p.prepare("Finish", finishDeliveries, `endpoints(), deliveries(), array_fill(0::bigint, ARRAY[30]),
  array_fill(2, ARRAY[30]), array_fill(1, ARRAY[30]), array_fill(0::bigint, ARRAY[30]), array_fill(5::bigint, ARRAY[30]),
  array_fill(5::bigint, ARRAY[30]), array_fill(5::bigint, ARRAY[30]), array_fill(500, ARRAY[30]), array_fill(''::text, ARRAY[30]),
  array_fill(''::bytea, ARRAY[30])`)
	return p
}

func (p *plans) exec(sql string) {
	p.Helper()
	sql = strings.ReplaceAll(sql, "BACKLOG", strconv.Itoa(backlog/2))
	if _, err := p.conn.PgConn().Exec(p.Context(), sql).ReadAll(); err != nil {
		p.Fatalf("%s: %v", sql, err)
	}
}

func (p *plans) prepare(name, sql, args string) {
	p.Helper()
	p.exec("PREPARE " + pgx.Identifier{name}.Sanitize() + " AS " + sql)
	p.statements[name] = args
}

// explain runs a statement, rolls it back, and returns the plan with actual rows.
func (p *plans) explain(name string) *plan {
	p.Helper()
	return p.explainText(name, "EXECUTE "+pgx.Identifier{name}.Sanitize()+"("+p.statements[name]+")")
}

// explainText is explain for a statement that isn't prepared.
func (p *plans) explainText(name, statement string) *plan {
	p.Helper()
	p.exec("BEGIN")
	defer p.exec("ROLLBACK")
	var text []byte
	err := p.conn.QueryRow(p.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+statement, pgx.QueryExecModeSimpleProtocol).Scan(&text)
	if err != nil {
		p.Fatalf("%s: %v", name, err)
	}
	var result []struct{ Plan plan }
	noError(p, json.Unmarshal(text, &result))
	return &result[0].Plan
}

// A plan is a node of the output of EXPLAIN.
type plan struct {
	NodeType string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []plan
}

// rows returns the number of rows of a table that were read.
func (p *plan) rows(relation string) (rows float64) {
	if p.Relation == relation {
		rows = (p.Rows + p.Filtered) * p.Loops
	}
	for i := range p.Plans {
		rows += p.Plans[i].rows(relation)
	}
	return rows
}

func (p *plan) lines(indent string) []string {
	lines := []string{fmt.Sprintf("%s%s %s %s: %v rows and %v others, %v times",
		indent, p.NodeType, p.Relation, p.Index, p.Rows, p.Filtered, p.Loops)}
	for i := range p.Plans {
		lines = append(lines, p.Plans[i].lines(indent+"  ")...)
	}
	return lines
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/formsvc/toolkit/storage/finding"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// DiagnoseOptions are the optional settings of [Diagnose].
type DiagnoseOptions struct {
	// Nodes is the number of stores of [Open] that use the database at once, each with
	// MaxConns connections and two more. Defaults to 1.
	Nodes int
	// MaxConns is [Options.MaxConns] of these stores. Defaults to 16.
	MaxConns int
	// LongTransaction is how long a transaction may be open before a warning. Defaults to
	// a minute.
	LongTransaction time.Duration
	// Now returns the time. Defaults to [time.Now].
	Now func() time.Time
}

func (o *DiagnoseOptions) withDefaults() DiagnoseOptions {
	var d DiagnoseOptions
	if o != nil {
		d = *o
	}
	if d.Nodes <= 0 {
		d.Nodes = 1
	}
	if d.MaxConns <= 0 {
		d.MaxConns = (*Options)(nil).withDefaults().MaxConns
	}
	if d.LongTransaction <= 0 {
		d.LongTransaction = time.Minute
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

// minVersion is the oldest server that this package works with.
const minVersion = 14

// Diagnose checks the database that dsn names, and its server, without changing anything.
// It reports settings that can lose data, free connections, transactions that hold up the
// feed, what fills the server's disk, poolers, the clock and the schema. A check that
// fails is a finding, too. It leaves out what the role may not see; a member of
// pg_monitor sees everything.
func Diagnose(ctx context.Context, dsn string, opts *DiagnoseOptions) []finding.Finding {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil { // the error may repeat the password
		return []finding.Finding{finding.Bad("database", "Write it as postgres://USER:PASSWORD@HOST:5432/NAME", "the data source name is not valid")}
	}
	exec := cfg.DefaultQueryExecMode == pgx.QueryExecModeExec
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // works through any pooler
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return []finding.Finding{finding.Bad("database", "See that the server runs, that the name and the password are right, and that pg_hba.conf admits this machine.",
			"%s:%d can't be reached: %v", cfg.Host, cfg.Port, err)}
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	d := &diagnosis{DiagnoseOptions: opts.withDefaults(), conn: conn, exec: exec}
	for _, check := range []func(context.Context) error{
		d.version, d.settings, d.connections, d.transactions, d.prepared, d.slots, d.pooler, d.clock, d.schema,
	} {
		if err := check(ctx); err != nil {
			d.found(finding.Bad("database", "See the log of the server.", "a check failed: %v", err))
		}
	}
	return d.list
}

type diagnosis struct {
	DiagnoseOptions

	conn *pgx.Conn
	exec bool // the data source name is set up for poolers
	list []finding.Finding
}

func (d *diagnosis) found(f finding.Finding) { d.list = append(d.list, f) }

func (d *diagnosis) version(ctx context.Context) error {
	var text string
	var number int
	err := d.conn.QueryRow(ctx, "SELECT current_setting('server_version'), current_setting('server_version_num')::int").Scan(&text, &number)
	if err == nil {
		d.found(versionFinding(text, number))
	}
	return err
}

func versionFinding(text string, number int) finding.Finding {
	if number < minVersion*10_000 {
		return finding.Bad("database", fmt.Sprintf("Upgrade to version %d or later.", minVersion), "Postgres %s answers", text)
	}
	return finding.Good("database", "Postgres %s answers", text)
}

// setting is a value that a setting must not have, or must have.
type setting struct{ name, bad, good, level, advice string }

func settings() []setting {
	return []setting{
		{"fsync", "off", "", "problem", "Set fsync = on: without it acknowledged writes, or the whole database, are lost when the machine loses its power."},
		{"synchronous_commit", "off", "", "problem", "Set synchronous_commit = on, also for the role and the database: the server refuses to start without it."},
		{"full_page_writes", "off", "", "warning", "Set full_page_writes = on, unless the file system never writes partial pages (ZFS)."},
		{"standard_conforming_strings", "off", "", "warning", "Set it on for the role and the database; connections of the server set it for themselves."},
		{"server_encoding", "", "UTF8", "problem", "Create a new database with ENCODING 'UTF8' TEMPLATE template0."},
	}
}

func (d *diagnosis) settings(ctx context.Context) error {
	for _, s := range settings() {
		var got string
		if err := d.conn.QueryRow(ctx, "SELECT current_setting($1)", s.name).Scan(&got); err != nil {
			return err
		}
		if got != s.bad && (s.good == "" || got == s.good) {
			d.found(finding.Good(s.name, "%s", got))
			continue
		}
		d.found(finding.Finding{Check: s.name, Level: finding.Level(s.level), Detail: "it is " + got, Advice: s.advice})
	}
	return nil
}

const connectionRoom = `
SELECT least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    nullif((SELECT datconnlimit FROM pg_database WHERE datname = current_database()), -1),
    nullif((SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), -1)),
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' OR backend_type IS NULL AND datid IS NOT NULL)`

// connections compares the number of connections allowed with that which the nodes use.
func (d *diagnosis) connections(ctx context.Context) error {
	var room, used int
	if err := d.conn.QueryRow(ctx, connectionRoom).Scan(&room, &used); err != nil {
		return err
	}
	need := d.Nodes * (d.MaxConns + 2)
	switch {
	case room < need:
		d.found(finding.Warn("connections", "Raise max_connections, or the limit of the database or the role; or use a pooler.",
			"%d are allowed, and servers use up to %d (%d each)", room, need, d.MaxConns+2))
	case used > room*9/10:
		d.found(finding.Warn("connections", "Raise max_connections, or see who else uses the server: SELECT * FROM pg_stat_activity",
			"%d of %d are in use", used, room))
	default:
		d.found(finding.Good("connections", "%d of %d are in use; servers use up to %d", used, room, need))
	}
	return nil
}

const openTransactions = `
SELECT pid, coalesce(datname, ''), coalesce(application_name, ''), coalesce(state, ''), extract(epoch FROM clock_timestamp() - xact_start)::float8
FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND xact_start < clock_timestamp() - $1::float8 * interval '1 second'
ORDER BY xact_start LIMIT 1`

// transactions looks for transactions that hold up the feed: any that has written
// something, in any database of the server.
func (d *diagnosis) transactions(ctx context.Context) error {
	const advice = "Commit or end it (SELECT pg_terminate_backend(PID)): GET /v1/events shows nothing newer while it is open. " +
		"Set idle_in_transaction_session_timeout."
	var pid int
	var database, program, state string
	var age float64
	err := d.conn.QueryRow(ctx, openTransactions, d.LongTransaction.Seconds()).Scan(&pid, &database, &program, &state, &age)
	if errors.Is(err, pgx.ErrNoRows) {
		d.found(finding.Good("transactions", "no writing transaction is open for longer than %v", d.LongTransaction))
		return nil
	}
	if err != nil {
		return err
	}
	d.found(finding.Warn("transactions", advice, "a writing transaction is open for %v: process %d (%s, %s), database %s",
		time.Duration(age*float64(time.Second)).Round(time.Millisecond), pid, program, state, database))
	return nil
}

// prepared looks for transactions that wait for their second phase.
func (d *diagnosis) prepared(ctx context.Context) error {
	var id, database string
	err := d.conn.QueryRow(ctx, "SELECT gid, database FROM pg_prepared_xacts "+
		"WHERE prepared < clock_timestamp() - $1::float8 * interval '1 second' ORDER BY prepared LIMIT 1",
		d.LongTransaction.Seconds()).Scan(&id, &database)
	if errors.Is(err, pgx.ErrNoRows) {
		d.found(finding.Good("prepared transactions", "no old prepared transaction"))
		return nil
	}
	if err != nil {
		return err
	}
	d.found(finding.Warn("prepared transactions", "End it (COMMIT PREPARED or ROLLBACK PREPARED): it keeps its locks and holds up the feed, also over restarts.",
		"%q in database %s waits for its second phase", id, database))
	return nil
}

// slots looks for replication slots without a reader.
func (d *diagnosis) slots(ctx context.Context) error {
	var name string
	var kept *int64
	err := d.conn.QueryRow(ctx, "SELECT slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint FROM pg_replication_slots "+
		"WHERE NOT active AND restart_lsn IS NOT NULL AND NOT pg_is_in_recovery() ORDER BY 2 DESC LIMIT 1").Scan(&name, &kept)
	if errors.Is(err, pgx.ErrNoRows) {
		d.found(finding.Good("replication slots", "every slot has a reader"))
		return nil
	}
	if err != nil {
		return err
	}
	mb := int64(0)
	if kept != nil {
		mb = *kept >> 20
	}
	d.found(finding.Warn("replication slots", "Start its reader, or drop it (SELECT pg_drop_replication_slot(NAME)): the server keeps its log for it until the disk is full.",
		"%q has no reader; the server keeps %d MB of log for it", name, mb))
	return nil
}

// pooler detects a pooler: behind one, a client is told another process than the one that
// serves it.
func (d *diagnosis) pooler(ctx context.Context) error {
	var pid uint32
	if err := d.conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	switch told := d.conn.PgConn().PID(); {
	case told == pid:
		d.found(finding.Good("pooler", "none in between"))
	case d.exec:
		d.found(finding.Good("pooler", "there is one in between, and default_query_exec_mode=exec is set"))
	default:
		d.found(finding.Warn("pooler", "If it pools transactions, add default_query_exec_mode=exec to the data source name: "+
			"LISTEN doesn't work through it, and prepared statements only with PgBouncer 1.21 and max_prepared_statements.",
			"there is one in between"))
	}
	return nil
}

func (d *diagnosis) clock(ctx context.Context) error {
	var theirs time.Time
	before := d.Now()
	if err := d.conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&theirs); err != nil {
		return err
	}
	after := d.Now()
	d.found(bunstore.ClockFinding("the database", theirs, before.Add(after.Sub(before)/2)))
	return nil
}

func (d *diagnosis) schema(ctx context.Context) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	rows, err := d.conn.Query(ctx, bunstore.ColumnsOfPostgres)
	if err != nil {
		return err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[bunstore.SchemaColumn])
	if err != nil {
		return err
	}
	schema := bunstore.NewSchema(columns)
	if query := schema.SelectRows(); query != "" {
		if rows, err = d.conn.Query(ctx, query); err != nil {
			return err
		}
		if schema.Rows, err = pgx.CollectRows(rows, pgx.RowToStructByPos[bunstore.SchemaRow]); err != nil {
			return err
		}
	}
	f, usable := schema.Finding(known)
	if d.found(f); !usable {
		return nil
	}
	return d.feed(ctx)
}

const heldBack = `
SELECT min(e.created_at) FROM formsvc_feed AS feed, formsvc_accounts AS a CROSS JOIN LATERAL (
  SELECT e.created_at FROM formsvc_events AS e
  WHERE e.account_id = a.id AND e.xact >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint + feed."offset"
  ORDER BY e.xact, e.seq LIMIT 1
) AS e WHERE feed.id = 1`

// feed looks for events that the feed doesn't show yet. Unlike transactions, it needs no
// privileges.
func (d *diagnosis) feed(ctx context.Context) error {
	var oldest *int64
	if err := d.conn.QueryRow(ctx, heldBack).Scan(&oldest); err != nil {
		return err
	}
	if oldest != nil {
		if since := time.UnixMicro(*oldest); d.Now().Sub(since) > d.LongTransaction {
			d.found(finding.Warn("feed", "Find the transaction that is open in any database of the server: SELECT * FROM pg_stat_activity WHERE backend_xid IS NOT NULL, "+
				"or in pg_prepared_xacts.", "GET /v1/events holds back events since %s", since.UTC().Format(time.RFC3339)))
			return nil
		}
	}
	d.found(finding.Good("feed", "it shows every event"))
	return nil
}

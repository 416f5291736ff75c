package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// Portable is for package transfer.
func (s *Store) Portable() bunstore.Portable { return portable{s} }

type portable struct{ s *Store }

func (p portable) Place() string {
	if p.s.path == "" {
		return "a SQLite database"
	}
	return "sqlite:" + p.s.path
}

func (portable) Kind() string               { return "sqlite" }
func (portable) Rebind(query string) string { return query }
func (portable) Param(bunstore.Kind) string { return "?" }
func (p portable) Classify(err error) error { return p.s.backend.Classify(err) }
func (portable) TablesTo(kind string) []bunstore.Table {
	list := bunstore.Tables()
	for i := range list {
		if list[i].Name == "formsvc_events" {
			t := &list[i]
			t.Columns[t.Index("xact")].Expr, t.Columns[t.Index("seq")].Expr = "seq", "0"
			t.Key = []string{"xact"}
		}
	}
	if kind == "sqlite" {
		list = append(list, bunstore.Table{Name: "formsvc_positions", Key: []string{"seq"}, Columns: []bunstore.Column{
			{Name: "seq", Kind: bunstore.Int}, {Name: "xact", Kind: bunstore.Int}, {Name: "row", Kind: bunstore.Int},
		}})
	}
	return list
}

// TablesFrom includes the positions that events had in the other database.
func (p portable) TablesFrom(kind string) []bunstore.Table {
	list := p.TablesTo(kind)
	if kind == "sqlite" {
		return list
	}
	for i := range list {
		if list[i].Name == "formsvc_events" {
			t := &list[i]
			t.Columns[t.Index("xact")].Expr = "coalesce((SELECT p.xact FROM formsvc_positions AS p WHERE p.seq = formsvc_events.seq), seq)"
			t.Columns[t.Index("seq")].Expr = "coalesce((SELECT p.row FROM formsvc_positions AS p WHERE p.seq = formsvc_events.seq), 0)"
		}
	}
	return list
}

func (p portable) Versions(ctx context.Context) (has, knows int, err error) {
	list, err := migrations()
	if err != nil {
		return 0, 0, err
	}
	err = p.Read(ctx, func(c bun.IConn) error {
		has, err = bunstore.Version(ctx, c, schemaExists)
		return err
	})
	return has, len(list), err
}

func (p portable) Read(ctx context.Context, do func(c bun.IConn) error) (err error) {
	c, err := p.s.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tx, err := c.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	err = do(tx)
	_ = tx.Rollback() // nothing was written; ctx may already have rolled back
	return err
}

func (p portable) Write(ctx context.Context, do func(c bun.IConn) error) error {
	return p.s.tx.Run(ctx, func(_ context.Context, c bun.IConn) error { return do(c) })
}

// insertRows is the number of rows that one statement inserts.
const insertRows = 64

func (p portable) Insert(ctx context.Context, c bun.IConn, t *bunstore.Table, rows [][]any) error {
	if t.Name == "formsvc_events" {
		return insertEvents(ctx, c, t, rows)
	}
	names := make([]string, len(t.Columns))
	for i := range t.Columns {
		names[i] = t.Columns[i].Name
	}
	return insertRowsInto(ctx, c, t.Name, names, rows)
}

func insertRowsInto(ctx context.Context, c bun.IConn, table string, names []string, rows [][]any) error {
	head := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES "
	row := "(?" + strings.Repeat(", ?", len(names)-1) + ")"
	many := head + strings.Repeat(row+", ", insertRows-1) + row
	args := make([]any, 0, insertRows*len(names))
	for len(rows) > 0 {
		n, statement := 1, head+row
		if len(rows) >= insertRows {
			n, statement = insertRows, many
		}
		args = args[:0]
		for _, r := range rows[:n] {
			for _, v := range r {
				if b, ok := v.([]byte); ok {
					v = notNull(b)
				}
				args = append(args, v)
			}
		}
		if _, err := c.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// insertEvents numbers events by their position if that is one number, as in SQLite.
// Otherwise a position has two numbers, and many events share the first one. Those events
// are numbered in the same order, starting at the first one's number, and their positions
// are recorded.
func insertEvents(ctx context.Context, c bun.IConn, t *bunstore.Table, rows [][]any) error {
	var last int64
	if err := c.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM formsvc_events").Scan(&last); err != nil {
		return err
	}
	xact, seq := t.Index("xact"), t.Index("seq")
	names := make([]string, 0, len(t.Columns))
	for i := range t.Columns {
		if i != xact {
			names = append(names, t.Columns[i].Name)
		}
	}
	events, noted := make([][]any, 0, len(rows)), [][]any{}
	for _, r := range rows {
		commit, okCommit := r[xact].(int64)
		row, okRow := r[seq].(int64)
		if !okCommit || !okRow {
			return errors.New("sqlite: an event without a position")
		}
		at := commit
		if row != 0 {
			at = max(last+1, commit)
			noted = append(noted, []any{at, commit, row})
		}
		last = at
		event := make([]any, 0, len(names))
		for i, v := range r {
			switch i {
			case xact:
			case seq:
				event = append(event, at)
			default:
				event = append(event, v)
			}
		}
		events = append(events, event)
	}
	if err := insertRowsInto(ctx, c, "formsvc_events", names, events); err != nil {
		return err
	}
	return insertRowsInto(ctx, c, "formsvc_positions", []string{"seq", "xact", "row"}, noted)
}

// LastPosition returns the last position ever assigned, because the last events may be
// deleted.
func (p portable) LastPosition(ctx context.Context, c bun.IConn) (last int64, err error) {
	err = c.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'formsvc_events'").Scan(&last)
	return last, err
}

const fencePrefix = "formsvc_fence_"

// Fence adds triggers. They affect every later write, in any process, even by statements
// prepared before.
func (p portable) Fence(ctx context.Context, c bun.IConn) error {
	tables, err := p.tables(ctx, c)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if table == "formsvc_identity" {
			continue
		}
		for _, change := range []string{"INSERT", "UPDATE", "DELETE"} {
			_, err := c.ExecContext(ctx, fmt.Sprintf("CREATE TRIGGER IF NOT EXISTS %s%s_%s BEFORE %s ON %s "+
				"BEGIN SELECT RAISE(ABORT, 'the data is being moved to another database'); END",
				fencePrefix, table, strings.ToLower(change), change, table))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (p portable) Unfence(ctx context.Context, c bun.IConn) error {
	names, err := bunstore.Strings(ctx, c,
		"SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'formsvc\\_fence\\_%' ESCAPE '\\'")
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := c.ExecContext(ctx, "DROP TRIGGER "+name); err != nil {
			return err
		}
	}
	return nil
}

func (portable) tables(ctx context.Context, c bun.IConn) ([]string, error) {
	return bunstore.Strings(ctx, c,
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'formsvc\\_%' ESCAPE '\\' ORDER BY name")
}

// Empty drops the triggers while it deletes, because one of them protects the audit
// trail.
func (p portable) Empty(ctx context.Context, c bun.IConn) error {
	triggers, err := bunstore.Strings(ctx, c, "SELECT name || ' ' || sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'formsvc_audit'")
	if err != nil {
		return err
	}
	for _, trigger := range triggers {
		name, _, _ := strings.Cut(trigger, " ")
		if _, err := c.ExecContext(ctx, "DROP TRIGGER "+name); err != nil {
			return err
		}
	}
	if _, err := c.ExecContext(ctx, "PRAGMA defer_foreign_keys = 1"); err != nil { // until the commit
		return err
	}
	tables, err := p.tables(ctx, c)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if table == "formsvc_identity" || table == "formsvc_schema" {
			continue
		}
		if _, err := c.ExecContext(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	for _, trigger := range triggers {
		_, text, _ := strings.Cut(trigger, " ")
		if _, err := c.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (p portable) Finish(ctx context.Context, c bun.IConn, last int64) error {
	for _, statement := range []string{
		"DELETE FROM formsvc_counters",
		"INSERT INTO formsvc_counters (campaign_id, shard, responses) SELECT campaign_id, 0, count(*) FROM formsvc_responses GROUP BY campaign_id",
		"DELETE FROM formsvc_statuses",
		"INSERT INTO formsvc_statuses (campaign_id, status, responses) " +
			"SELECT campaign_id, status, count(*) FROM formsvc_responses WHERE status <> 'pending' GROUP BY campaign_id, status",
	} {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	// A table that never had a number has no row.
	result, err := c.ExecContext(ctx, "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'formsvc_events'", last)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	_, err = c.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES ('formsvc_events', ?)", last)
	return err
}

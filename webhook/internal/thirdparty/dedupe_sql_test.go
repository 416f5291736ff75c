package thirdparty_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formsvc/toolkit/webhook"
)

func TestNewSQLDeduperRefuses(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	long := strings.Repeat("x", 64)
	if _, err := webhook.NewSQLDeduper(nil, nil); err == nil {
		t.Error("no database: no error")
	}
	if _, err := webhook.NewSQLDeduper(db, &webhook.SQLOptions{Reservation: -1}); err == nil {
		t.Error("negative reservation: no error")
	}
	for _, table := range []string{
		"a b", "a;", `a"`, "a'", "Events", "1a", ".a", "a.", "a.b.c", "a-b", "é", "a\n", "a--", long, long + ".a", "a." + long,
	} {
		if _, err := webhook.NewSQLDeduper(db, &webhook.SQLOptions{Table: table}); err == nil {
			t.Errorf("table %q: no error", table)
		}
	}
}

// A table's name may be a reserved word, and may have a schema.
func TestSQLDeduperTable(t *testing.T) {
	t.Parallel()
	check := func(db *sql.DB, opts *webhook.SQLOptions) {
		d := newSQLDeduper(t, db, opts)
		handle(t, d, eventID)
		if err := d.Abort(t.Context(), eventID); err != nil {
			t.Errorf("%s: %v", opts.Table, err)
		}
		if got := begin(t, d, eventID); got != webhook.Done {
			t.Errorf("%s: the event is %v, want done", opts.Table, got)
		}
		if n, err := d.Prune(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
			t.Errorf("%s: pruned %d, %v", opts.Table, n, err)
		}
	}
	sqlite, postgres := openSQLite(t), openPostgres(t)
	var schema string
	noError(t, postgres.QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&schema))
	for _, table := range []string{"order", "select", "table", "user", "_1", "e", strings.Repeat("x", 63)} {
		check(sqlite, &webhook.SQLOptions{Table: table, QuestionMarks: true})
		check(postgres, &webhook.SQLOptions{Table: table})
	}
	check(sqlite, &webhook.SQLOptions{Table: "main.group", QuestionMarks: true})
	check(postgres, &webhook.SQLOptions{Table: schema + ".group"})
}

// reserve reserves an event in a transaction, which end commits or rolls back.
func reserve(ctx context.Context, db *sql.DB, d *webhook.SQLDeduper, opts *sql.TxOptions, end func(*sql.Tx) error) (bool, error) {
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	fresh, err := d.Reserve(ctx, tx, eventID)
	if err != nil {
		return false, err
	}
	return fresh, end(tx)
}

func TestReserveIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, db *sql.DB, d *webhook.SQLDeduper, _ *clock) {
		for i, tt := range []struct {
			end   func(*sql.Tx) error
			fresh bool
			then  webhook.State
		}{
			{(*sql.Tx).Rollback, true, webhook.Fresh},
			{(*sql.Tx).Rollback, true, webhook.Busy}, // a reservation by Begin doesn't count
			{(*sql.Tx).Commit, true, webhook.Done},
			{(*sql.Tx).Commit, false, webhook.Done},
			{(*sql.Tx).Rollback, false, webhook.Done},
		} {
			if fresh, err := reserve(t.Context(), db, d, nil, tt.end); fresh != tt.fresh || err != nil {
				t.Errorf("%d: got %v, %v, want %v", i, fresh, err, tt.fresh)
			}
			if got := begin(t, d, eventID); got != tt.then {
				t.Errorf("%d: then the event is %v, want %v", i, got, tt.then)
			}
		}
	})
}

// Concurrent duplicates on Postgres behave as documented.
func TestReserveWaitsOnPostgres(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		level sql.IsolationLevel
		end   func(*sql.Tx) error
		fresh bool
		code  string
	}{
		{"committed", sql.LevelReadCommitted, (*sql.Tx).Commit, false, ""},
		{"rolled back", sql.LevelReadCommitted, (*sql.Tx).Rollback, true, ""},
		{"committed, repeatable read", sql.LevelRepeatableRead, (*sql.Tx).Commit, false, "40001"},
		{"rolled back, repeatable read", sql.LevelRepeatableRead, (*sql.Tx).Rollback, true, ""},
		{"committed, serializable", sql.LevelSerializable, (*sql.Tx).Commit, false, "40001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := openPostgres(t)
			d := newSQLDeduper(t, db, nil)
			opts := &sql.TxOptions{Isolation: tt.level}
			type result struct {
				fresh bool
				err   error
			}
			second := make(chan result, 1)
			fresh, err := reserve(t.Context(), db, d, opts, func(first *sql.Tx) error {
				go func() {
					fresh, err := reserve(t.Context(), db, d, opts, (*sql.Tx).Commit)
					second <- result{fresh, err}
				}()
				waitUntilBlocked(t, db, first)
				select {
				case got := <-second:
					t.Errorf("the second did not wait: %+v", got)
				default:
				}
				return tt.end(first)
			})
			if !fresh || err != nil {
				t.Fatalf("the first: got %v, %v", fresh, err)
			}
			got := <-second
			code := ""
			if e, ok := errors.AsType[*pgconn.PgError](got.err); ok {
				code = e.Code
			}
			if got.fresh != tt.fresh || code != tt.code || (tt.code == "") != (got.err == nil) {
				t.Errorf("the second: got %+v, want %v and code %q", got, tt.fresh, tt.code)
			}
		})
	}
}

// waitUntilBlocked waits until another connection waits for that of tx.
func waitUntilBlocked(t *testing.T, db *sql.DB, tx *sql.Tx) {
	t.Helper()
	var pid int
	noError(t, tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	for blocked := 0; blocked == 0; {
		noError(t, db.QueryRowContext(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", pid).Scan(&blocked))
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, _ *sql.DB, d *webhook.SQLDeduper, now *clock) {
		handle(t, d, "old")
		begin(t, d, "abandoned")
		now.advance(time.Hour)
		start := now.Now()
		handle(t, d, "new")
		begin(t, d, "reserved")
		if n, err := d.Prune(t.Context(), start); n != 2 || err != nil {
			t.Errorf("pruned %d, %v, want 2", n, err)
		}
		for id, want := range map[string]webhook.State{
			"old": webhook.Fresh, "abandoned": webhook.Fresh, "new": webhook.Done, "reserved": webhook.Busy,
		} {
			if got := begin(t, d, id); got != want {
				t.Errorf("%s is %v, want %v", id, got, want)
			}
		}
	})
}

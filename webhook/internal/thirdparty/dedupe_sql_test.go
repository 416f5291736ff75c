package thirdparty_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
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
	if err := postgres.QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"order", "select", "table", "user", "_1", "e", strings.Repeat("x", 63)} {
		check(sqlite, &webhook.SQLOptions{Table: table, QuestionMarks: true})
		check(postgres, &webhook.SQLOptions{Table: table})
	}
	check(sqlite, &webhook.SQLOptions{Table: "main.group", QuestionMarks: true})
	check(postgres, &webhook.SQLOptions{Table: schema + ".group"})
}

func TestSQLDeduperSchemaCanBeRunAgain(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, db *sql.DB, d *webhook.SQLDeduper, _ *clock) {
		handle(t, d, eventID)
		if _, err := db.ExecContext(t.Context(), d.Schema()); err != nil {
			t.Fatal(err)
		}
		if got := begin(t, d, eventID); got != webhook.Done {
			t.Errorf("the event is %v, want done", got)
		}
	})
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

func TestReserveRefusesIdentifiers(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, db *sql.DB, d *webhook.SQLDeduper, _ *clock) {
		for _, id := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 256)} {
			if fresh, err := d.Reserve(t.Context(), db, id); fresh || err == nil || !strings.HasPrefix(err.Error(), "webhook: reserve event: identifier ") {
				t.Errorf("%.10q: got %v, %v", id, fresh, err)
			}
		}
	})
}

// The effect and its record commit together: many deliveries of few events, some of which fail
// after the effect, leave one effect each, with the handler's deduplication or without.
func TestReserveMakesTheEffectHappenOnce(t *testing.T) {
	t.Parallel()
	for _, withHandler := range []bool{false, true} {
		t.Run(fmt.Sprintf("deduper in the handler %v", withHandler), func(t *testing.T) {
			t.Parallel()
			onEachDatabase(t, func(t *testing.T, db *sql.DB, d *webhook.SQLDeduper, _ *clock) {
				if _, err := db.ExecContext(t.Context(), "CREATE TABLE effects (id TEXT)"); err != nil {
					t.Fatal(err)
				}
				opts := &webhook.Options{}
				if withHandler {
					opts.Deduper = d
				}
				var calls atomic.Int64
				server := httptest.NewServer(newVerifier(t, opts, secret).Handler(http.HandlerFunc(
					func(w http.ResponseWriter, r *http.Request) {
						delivery, _ := webhook.FromContext(r.Context())
						if err := apply(r.Context(), db, d, delivery.EventID, calls.Add(1)%3 == 0); err != nil {
							w.WriteHeader(http.StatusInternalServerError)
						}
					})))
				t.Cleanup(server.Close)
				var wg sync.WaitGroup
				for i := range 40 {
					content := fmt.Sprintf(`{"id":"e-%d","event":"response.created"}`, i%4)
					wg.Go(func() {
						for post(t, server.URL, content).StatusCode != http.StatusOK && t.Context().Err() == nil {
						}
					})
				}
				wg.Wait()
				var all, distinct int
				err := db.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT id) FROM effects").Scan(&all, &distinct)
				if err != nil || all != 4 || distinct != 4 {
					t.Errorf("%d effects of %d events, %v, want 4 of 4", all, distinct, err)
				}
			})
		})
	}
}

// apply is the effect of an event, which may fail at the end.
func apply(ctx context.Context, db *sql.DB, d *webhook.SQLDeduper, id string, fail bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	fresh, err := d.Reserve(ctx, tx, id)
	if err != nil || !fresh {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES ('"+id+"')"); err != nil {
		return err
	}
	if fail {
		return errors.New("failed after the effect")
	}
	return tx.Commit()
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
	if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	for blocked := 0; blocked == 0; {
		err := db.QueryRowContext(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", pid).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// On SQLite the second transaction waits for the lock; without a busy timeout it fails.
func TestReserveOnSQLite(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	d := newSQLDeduper(t, db, &webhook.SQLOptions{QuestionMarks: true})
	second := make(chan error, 1)
	fresh, err := reserve(t.Context(), db, d, nil, func(first *sql.Tx) error {
		if err := reserveAtOnce(t.Context(), db, d); err == nil || !strings.Contains(err.Error(), "SQLITE_BUSY") {
			t.Errorf("without busy_timeout: got %v", err)
		}
		go func() {
			fresh, err := reserve(t.Context(), db, d, nil, (*sql.Tx).Commit)
			if fresh {
				err = errors.New("fresh a second time")
			}
			second <- err
		}()
		return first.Commit()
	})
	if !fresh || err != nil {
		t.Fatalf("the first: got %v, %v", fresh, err)
	}
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
}

// reserveAtOnce reserves an event on a connection that doesn't wait for locks.
func reserveAtOnce(ctx context.Context, db *sql.DB, d *webhook.SQLDeduper) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	_, err = d.Reserve(ctx, conn, eventID)
	// The connection goes back to the pool.
	_, reset := conn.ExecContext(ctx, "PRAGMA busy_timeout = 60000")
	return errors.Join(err, reset)
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

func TestSQLDeduperWithoutTable(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	d, err := webhook.NewSQLDeduper(db, &webhook.SQLOptions{QuestionMarks: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Begin(t.Context(), eventID); err == nil || !strings.HasPrefix(err.Error(), "webhook: begin event: ") {
		t.Errorf("Begin: got %v", err)
	}
	if err := d.Commit(t.Context(), eventID); err == nil || !strings.HasPrefix(err.Error(), "webhook: commit event: ") {
		t.Errorf("Commit: got %v", err)
	}
	if err := d.Abort(t.Context(), eventID); err == nil || !strings.HasPrefix(err.Error(), "webhook: abort event: ") {
		t.Errorf("Abort: got %v", err)
	}
	if _, err := d.Prune(t.Context(), sentAt); err == nil || !strings.HasPrefix(err.Error(), "webhook: prune events: ") {
		t.Errorf("Prune: got %v", err)
	}
}

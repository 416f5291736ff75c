package wire_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/pg"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/wire"
)

// fixture is a server with a table, and a proxy in front of it.
type fixture struct {
	server *pg.Server
	proxy  *wire.Proxy
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := pg.Start(t, nil)
	s.Exec(t, "CREATE TABLE public.kept (n int); GRANT ALL ON public.kept TO formsvc")
	return &fixture{s, wire.New(t, s.Addr())}
}

// open returns a pool of one open connection through the proxy.
func (f *fixture) open(t testing.TB, more string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", f.proxy.DSN(t, f.server.DSN())+more)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// rows returns how many rows have a number.
func (f *fixture) rows(t testing.TB, n int) string {
	t.Helper()
	return f.server.Query(t, fmt.Sprintf("SELECT count(*) FROM kept WHERE n = %d", n))[0][0]
}

// insert is the statement that the tests cut.
const insert = "INSERT INTO kept VALUES ($1)"

// writers are the ways in which a client writes a row.
func writers() map[string]struct {
	parameters string // of the data source name
	match      func(string) bool
	write      func(t testing.TB, db *sql.DB) func(ctx context.Context, n int) error
} {
	// On a connection taken out of the pool: pgx calls a simple query safe to repeat when its reply is lost, and the pool
	// would repeat it.
	plain := func(_ testing.TB, db *sql.DB) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			conn, err := db.Conn(ctx)
			if err != nil {
				return fmt.Errorf("before the statement: %w", err)
			}
			defer func() { _ = conn.Close() }()
			_, err = conn.ExecContext(ctx, insert, n)
			return err
		}
	}
	type writer = struct {
		parameters string
		match      func(string) bool
		write      func(t testing.TB, db *sql.DB) func(ctx context.Context, n int) error
	}
	return map[string]writer{
		"prepared": {"", wire.Containing(insert), func(t testing.TB, db *sql.DB) func(context.Context, int) error {
			stmt, err := db.PrepareContext(t.Context(), insert)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = stmt.Close() })
			return func(ctx context.Context, n int) error {
				_, err := stmt.ExecContext(ctx, n)
				return err
			}
		}},
		"prepared, with a row": {"", wire.Containing(insert), func(_ testing.TB, db *sql.DB) func(context.Context, int) error {
			return func(ctx context.Context, n int) error {
				return db.QueryRowContext(ctx, insert+" RETURNING n", n).Scan(&n)
			}
		}},
		"exec":   {"&default_query_exec_mode=exec", wire.Containing(insert), plain},
		"simple": {"&default_query_exec_mode=simple_protocol", wire.Containing("INSERT INTO kept"), plain},
		"transaction": {"", wire.Commit, func(_ testing.TB, db *sql.DB) func(context.Context, int) error {
			return func(ctx context.Context, n int) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if _, err := tx.ExecContext(ctx, insert, n); err != nil {
					return fmt.Errorf("before the commit: %w", err)
				}
				return tx.Commit()
			}
		}},
	}
}

// TestCutAtEachPosition cuts each way of writing at each position: the client never
// learns the outcome, and the row exists or not as the position says.
func TestCutAtEachPosition(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	number := 0
	for name, w := range writers() {
		for position, want := range map[wire.Position]string{wire.Before: "0", wire.After: "1", wire.During: "1"} {
			t.Run(fmt.Sprintf("%s %d", name, position), func(t *testing.T) {
				db := f.open(t, w.parameters)
				write := w.write(t, db)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				number += 3
				if err := write(ctx, number); err != nil { // so that the connection has a history
					t.Fatal(err)
				}
				cuts := f.proxy.Cuts()
				f.proxy.Arm(position, w.match)
				err := write(ctx, number+1)
				if err == nil || strings.HasPrefix(err.Error(), "before") {
					t.Errorf("the client was told: %v", err)
				}
				if f.proxy.Armed() || f.proxy.Cuts() != cuts+1 {
					t.Errorf("armed: %t, %d cuts", f.proxy.Armed(), f.proxy.Cuts()-cuts)
				}
				if err := write(ctx, number+2); err != nil { // on a new connection
					t.Error(err)
				}
				for i, want := range []string{"1", want, "1"} {
					if got := f.rows(t, number+i); got != want {
						t.Errorf("write %d: %s rows, want %s", i, got, want)
					}
				}
			})
		}
	}
}

// TestCutEndsOneConnection cuts one of many connections that write at the same time.
func TestCutEndsOneConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const clients, writes = 8, 50
	var dbs []*sql.DB
	for range clients {
		dbs = append(dbs, f.open(t, ""))
	}
	f.proxy.Arm(wire.After, wire.Containing(insert))
	var failed sync.Map
	var running sync.WaitGroup
	for i, db := range dbs {
		running.Go(func() {
			for n := range writes {
				if _, err := db.ExecContext(t.Context(), insert, i*writes+n); err != nil {
					failed.Store(i*writes+n, err)
				}
			}
		})
	}
	running.Wait()
	failures := 0
	failed.Range(func(n, err any) bool {
		failures++
		if failures > 1 {
			t.Errorf("write %d failed too: %v", n, err)
		}
		return true
	})
	if got := f.server.Query(t, "SELECT count(*), count(DISTINCT n) FROM kept")[0]; failures != 1 || f.proxy.Cuts() != 1 ||
		got[0] != fmt.Sprint(clients*writes) || got[0] != got[1] {
		t.Errorf("%d failures, %d cuts, rows %v", failures, f.proxy.Cuts(), got)
	}
}

// recorder is a test that records its errors instead of failing.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }

// TestUnmatchedCutFails arms a cut that matches nothing: Disarm reports that, and a test that doesn't disarm it
// fails.
func TestUnmatchedCutFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, disarmed := range []bool{true, false} {
		r := &recorder{TB: t}
		f.proxy = wire.New(r, f.server.Addr())
		db := f.open(t, "")
		f.proxy.Arm(wire.Before, wire.Containing("no such statement"))
		if _, err := db.ExecContext(t.Context(), insert, 1); err != nil {
			t.Error(err)
		}
		stmt, err := db.PrepareContext(t.Context(), "SELECT 'no such statement'")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stmt.Close() }() // it is never executed
		if !f.proxy.Armed() || f.proxy.Cuts() != 0 {
			t.Errorf("armed: %t, %d cuts", f.proxy.Armed(), f.proxy.Cuts())
		}
		if disarmed && (!f.proxy.Disarm() || f.proxy.Disarm() || f.proxy.Armed()) {
			t.Error("Disarm does not say or do it")
		}
		for _, f := range r.cleanups {
			f()
		}
		if failed := len(r.errors) > 0; failed == disarmed {
			t.Errorf("disarmed: %t, errors %q", disarmed, r.errors)
		}
	}
}

func TestRefuseNewConnections(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.open(t, "")
	f.proxy.Refuse(t, true)
	f.proxy.Refuse(t, true) // does nothing
	if _, err := old.ExecContext(t.Context(), insert, 1); err != nil {
		t.Errorf("on the old connection: %v", err)
	}
	db, err := sql.Open("pgx", f.proxy.DSN(t, f.server.DSN()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a new connection: %v", err)
	}
	f.proxy.Refuse(t, false)
	f.proxy.Refuse(t, false) // does nothing
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCutAllResetsEveryConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var conns []*sql.Conn
	for range 3 {
		conn, err := f.open(t, "").Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		conns = append(conns, conn)
	}
	if n := f.proxy.CutAll(); n != len(conns) {
		t.Errorf("%d connections cut, want %d", n, len(conns))
	}
	for _, conn := range conns {
		if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err == nil {
			t.Error("a connection is still there")
		}
	}
	f.awaitBackends(t, "0")
	f.open(t, "")
}

// awaitBackends waits until the server has this number of client connections.
func (f *fixture) awaitBackends(t testing.TB, want string) {
	t.Helper()
	const count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'formsvc'"
	got := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got = f.server.Query(t, count)[0][0]; got == want {
			return
		}
	}
	t.Errorf("the server has %s connections, want %s", got, want)
}

func TestLatencyDelaysReplies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	db := f.open(t, "&default_query_exec_mode=exec")
	roundTrip := func() time.Duration {
		began := time.Now()
		if _, err := db.ExecContext(t.Context(), "SELECT 1"); err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	for _, d := range []time.Duration{100 * time.Millisecond, 50 * time.Millisecond} {
		f.proxy.Latency(t, d)
		if took := roundTrip(); took < 2*d {
			t.Errorf("a round trip took %v with %v each way", took, d)
		}
	}
	f.proxy.Latency(t, time.Hour)
	f.proxy.Latency(t, 0)
	roundTrip() // returns
}

// TestStallCarriesNothing stalls a waiting connection and a new one. Neither receives anything, even if the server closes
// them, and the server doesn't notice that a client has closed.
func TestStallCarriesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.open(t, "") // stays idle
	db, gone := f.open(t, "&default_query_exec_mode=exec"), f.open(t, "")
	conn, err := db.Conn(t.Context()) // which nothing tests first
	if err != nil {
		t.Fatal(err)
	}
	f.awaitBackends(t, "3")
	f.proxy.Stall(t, true)
	f.proxy.Stall(t, true) // does nothing
	results := make(chan error, 2)
	go func() {
		_, err := conn.ExecContext(context.WithoutCancel(t.Context()), insert, 1)
		results <- err
	}()
	go func() {
		fresh, err := sql.Open("pgx", f.proxy.DSN(t, f.server.DSN()))
		if err == nil {
			err = fresh.PingContext(context.WithoutCancel(t.Context()))
			_ = fresh.Close()
		}
		results <- err
	}()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	const pause = 200 * time.Millisecond // long enough to see most faults
	time.Sleep(pause)
	if n := f.server.Terminate(t); n != 3 {
		t.Errorf("the server had %d connections to end, want 3", n)
	}
	select {
	case err := <-results:
		t.Fatalf("a stalled connection ended: %v", err)
	case <-time.After(pause):
	}
	f.proxy.Stall(t, false)
	f.proxy.Stall(t, false) // does nothing
	for range 2 {
		if err := <-results; err == nil {
			t.Error("a connection survived the stall")
		}
	}
	_ = conn.Close()
	if got := f.rows(t, 1); got != "0" {
		t.Errorf("%s rows", got)
	}
	if _, err := db.ExecContext(t.Context(), insert, 2); err != nil {
		t.Error(err)
	}
}

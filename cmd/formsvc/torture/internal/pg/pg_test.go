package pg_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/pg"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
)

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pg.Limit)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// one returns a single value that the superuser queries.
func one(t testing.TB, s *pg.Server, query string) string {
	t.Helper()
	rows := s.Query(t, query)
	if len(rows) != 1 || len(rows[0]) != 1 {
		t.Fatalf("%s: %v", query, rows)
	}
	return rows[0][0]
}

// TestStopKeepsCommittedRows stops a server in each way while a client is connected: what was
// committed is there afterwards, at the same address.
func TestStopKeepsCommittedRows(t *testing.T) {
	t.Parallel()
	s := pg.Start(t, nil)
	s.Exec(t, "CREATE TABLE public.kept (n int); GRANT ALL ON public.kept TO formsvc")
	for n, mode := range []pg.Mode{pg.Fast, pg.Immediate, pg.Kill} {
		db := open(t, s.DSN())
		exec(t, db, fmt.Sprintf("INSERT INTO kept VALUES (%d)", n))
		s.Stop(t, mode)
		if err := db.PingContext(t.Context()); err == nil {
			t.Errorf("mode %d: the server still answers", mode)
		}
		s.Stop(t, mode) // does nothing
		s.Restart(t)
		if got := one(t, s, "SELECT count(*) FROM kept"); got != fmt.Sprint(n+1) {
			t.Errorf("mode %d: %s rows, want %d", mode, got, n+1)
		}
		exec(t, db, "SELECT 1") // the pool reconnects
	}
}

// TestKillLeavesNothing kills a busy server: all its processes and its shared memory
// segment are gone.
func TestKillLeavesNothing(t *testing.T) {
	t.Parallel()
	s := pg.Start(t, nil)
	db := open(t, s.DSN())
	done := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(t.Context(), "SELECT pg_sleep(600)")
		done <- err
	}()
	for one(t, s, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'") != "1" {
		time.Sleep(10 * time.Millisecond)
	}
	if processes, segments := s.Left(); processes < 2 || segments != 1 {
		t.Fatalf("a running server has %d processes and %d segments", processes, segments)
	}
	// A stopped process doesn't notice that the first one is gone.
	pid, err := strconv.Atoi(one(t, s, "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.Stop(t, pg.Kill)
	if processes, segments := s.Left(); processes != 0 || segments != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Fatalf("%d processes and %d segments are left", processes, segments)
	}
	if err := <-done; err == nil {
		t.Error("the query was answered")
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		durable bool
		fsync   string
	}{{true, "on"}, {false, "off"}} {
		s := pg.Start(t, &pg.Options{Durable: c.durable, Settings: map[string]string{"application_name": "it's"}})
		for name, want := range map[string]string{"fsync": c.fsync, "synchronous_commit": "on", "application_name": "it's"} {
			if got := one(t, s, "SHOW "+name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		db := open(t, s.DSN())
		var super, creates bool
		if err := db.QueryRowContext(t.Context(), "SELECT rolsuper, rolcreatedb FROM pg_roles WHERE rolname = current_user").
			Scan(&super, &creates); err != nil || super || !creates {
			t.Errorf("superuser: %t, may create databases: %t, %v", super, creates, err)
		}
	}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	s := pg.Start(t, nil)
	if n := s.Terminate(t); n != 0 {
		t.Errorf("%d connections of nobody", n)
	}
	db := open(t, s.DSN())
	for range 3 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err == nil {
				t.Error("the connection is still there")
			}
			_ = conn.Close()
		}()
	}
	if n := s.Terminate(t); n != 3 {
		t.Errorf("%d connections ended, want 3", n)
	}
}

// writer writes rows, numbered from 1, and remembers which were confirmed.
type writer struct {
	db   *sql.DB
	last int
	told map[int]bool
}

func (w *writer) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pg.Limit)
	defer cancel()
	w.last++
	_, err := w.db.ExecContext(ctx, "INSERT INTO kept VALUES ($1)", w.last)
	if err == nil {
		w.told[w.last] = true
	}
	return err
}

// check compares the rows of a server with those that the writer had confirmed.
func (w *writer) check(t testing.TB, s *pg.Server) {
	t.Helper()
	there := map[int]bool{}
	for _, row := range s.Query(t, "SELECT n FROM kept") {
		n, err := strconv.Atoi(row[0])
		if err != nil || n < 1 || n > w.last {
			t.Errorf("row %v, of %d", row, w.last)
		}
		there[n] = true
	}
	for n := range w.told {
		if !there[n] {
			t.Errorf("row %d is lost", n)
		}
	}
	t.Logf("%d rows written, %d told, %d there", w.last, len(w.told), len(there))
}

// TestFailover kills the primary under a writer three times and promotes the standby; the
// old primary becomes its standby. Every confirmed row must exist.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary := pg.Start(t, nil)
	primary.Exec(t, "CREATE TABLE public.kept (n int PRIMARY KEY); GRANT ALL ON public.kept TO formsvc")
	standby := primary.Standby(t)
	w := &writer{db: open(t, pg.MultiHost(primary, standby)), told: map[int]bool{}}
	for range 3 {
		under, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for n := 1; w.write(t.Context()) == nil; n++ {
				if n == 20 {
					close(under)
				}
			}
		}()
		select {
		case <-under:
		case <-stopped:
			t.Fatal("the writer fails")
		}
		primary.Stop(t, pg.Kill)
		<-stopped
		standby.Promote(t)
		primary, standby = standby, primary
		w.check(t, primary)
		if err := w.write(t.Context()); err != nil { // no standby to wait for
			t.Fatal(err)
		}
		began := time.Now()
		standby.Rejoin(t, primary)
		t.Logf("the old primary came back in %v", time.Since(began).Round(time.Millisecond))
		if err := w.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.check(t, primary)
		exec(t, open(t, pg.MultiHost(standby, primary)), "DELETE FROM kept WHERE false") // in either order
	}
}

// TestCommitWaitsForStandby commits while the standby is down: the commit waits until the
// standby is back.
func TestCommitWaitsForStandby(t *testing.T) {
	t.Parallel()
	primary := pg.Start(t, nil)
	standby := primary.Standby(t)
	db := open(t, primary.DSN())
	exec(t, db, "CREATE TABLE kept (n int)")
	standby.Stop(t, pg.Immediate)
	done := make(chan error)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO kept VALUES (1)")
		done <- err
	}()
	for one(t, primary, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'INSERT%'") != "1" {
		select {
		case err := <-done:
			t.Fatalf("the commit did not wait: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	standby.Restart(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := one(t, standby, "SELECT count(*) FROM kept"); got != "1" {
		t.Errorf("the standby has %s rows", got)
	}
}

// TestStoreThroughPooler uses the toolkit's store through the pooler, also after a
// restart of the server.
func TestStoreThroughPooler(t *testing.T) {
	t.Parallel()
	s := pg.Start(t, nil)
	dsn := pg.Pooler(t, s)
	store, err := postgres.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	svc, err := formsvc.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	account, err := svc.Accounts.Create(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	campaign, err := svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"})
	if err != nil {
		t.Fatal(err)
	}
	add := func() error {
		_, err := svc.Responses.Create(t.Context(), campaign.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
		return err
	}
	for range 10 {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	s.Restart(t)
	for deadline := time.Now().Add(pg.Limit); ; time.Sleep(50 * time.Millisecond) {
		err := add()
		if err == nil {
			break
		}
		if !errors.Is(err, formsvc.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if got := one(t, s, "SELECT count(*) FROM formsvc_responses"); got != "11" {
		t.Errorf("%s responses, want 11", got)
	}
}

// TestPoolerSharesConnections uses more clients than the pooler has connections to the
// server. All of them stay connected.
func TestPoolerSharesConnections(t *testing.T) {
	t.Parallel()
	s := pg.Start(t, nil)
	db := open(t, pg.Pooler(t, s))
	const clients = 30
	for range clients {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), pg.Limit)
		defer cancel()
		var n int
		if err := conn.QueryRowContext(ctx, "SELECT $1::int", 7).Scan(&n); err != nil || n != 7 {
			t.Fatal(n, err)
		}
	}
	if n := s.Terminate(t); n == 0 || n >= clients {
		t.Errorf("%d clients have %d connections", clients, n)
	}
}

// TestKilledBinary kills a process that runs this test in place of a test binary: its
// server and the directory go, too.
func TestKilledBinary(t *testing.T) {
	if os.Getenv("FORMSVC_TEST_VICTIM") != "" {
		s := pg.Start(t, nil)
		pg.Pooler(t, s)
		fmt.Printf("\n%s\n", s.Dir())
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with its parent process, too
		return
	}
	t.Parallel()
	// -test.v prints why the test is skipped.
	victim := osexec.Command(os.Args[0], "-test.run=^TestKilledBinary$", "-test.v", "-test.timeout=0")
	victim.Env = append(os.Environ(), "FORMSVC_TEST_VICTIM=1")
	stdin, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	victim.Stderr = victim.Stdout
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	dir, said := "", ""
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "/") {
			dir = lines.Text()
		}
		said += lines.Text() + "\n"
	}
	if dir == "" {
		err := victim.Wait()
		if strings.Contains(said, "--- SKIP") {
			t.Skipf("SKIPPED: so is the test in a process of its own:\n%s", said)
		}
		t.Fatalf("the test in a process of its own starts no server (%v):\n%s", err, said)
	}
	if n := pg.Processes(dir); n < 2 {
		t.Errorf("%s has %d processes, not a server's", dir, n)
	}
	_ = victim.Process.Kill()
	_ = victim.Wait() // reports that it was killed
	for deadline := time.Now().Add(pg.Limit); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && pg.Processes(dir) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left, and the directory: %v", pg.Processes(dir), err)
		}
	}
}

// Package pg starts PostgreSQL servers for tests, which can stop them in every way, kill them, or replace them by a standby.
// The servers run the installed programs of PostgreSQL 14 or later.
//
// A server listens on a port of 127.0.0.1 and keeps that port while it is stopped. It lives in a temporary directory below
// TMPDIR. Its processes and the directory are removed when the test ends, also when the test binary is killed (on Linux).
//
// The functions end the test when something fails that the test doesn't check, so call them on its goroutine. Two goroutines
// must not use a server at once, but clients may be busy with it meanwhile.
package pg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn" // for tests of a command, where everything meets
)

// limit limits every wait. Only failures take so long.
const limit = 3 * time.Minute

// Options configures a server. The zero value is ready for use.
type Options struct {
	// Durable leaves fsync on. A server that is only killed keeps what it committed
	// without fsync; a server whose machine fails doesn't. If it is true, TMPDIR should
	// be on a real disk. synchronous_commit is on in both cases. Defaults to false.
	Durable bool
	// Settings are lines for postgresql.conf by name, without quotes. Defaults to none.
	Settings map[string]string
}

// A Server is a PostgreSQL server with a database and a role named formsvc. As in
// production, the role owns the database, may create others, and is not a superuser.
type Server struct {
	programs *programs
	dir      string // of everything that belongs to the server
	data     string // of its data, in dir
	port     int
	durable  bool
	process  *process // nil while the server is stopped
}

// Start starts a server. Without PostgreSQL it skips the test, or fails it under CI=true.
func Start(t testing.TB, opts *Options) *Server {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	s := newServer(t, findPrograms(t), o.Durable)
	s.initialize(t)
	s.configure(t, o.Settings)
	s.start(t)
	s.execIn(t, "postgres", "CREATE ROLE formsvc LOGIN CREATEDB")
	s.execIn(t, "postgres", "CREATE DATABASE formsvc OWNER formsvc")
	return s
}

// newServer returns a server with a directory and no data.
func newServer(t testing.TB, p *programs, durable bool) *Server {
	t.Helper()
	dir := p.directory(t)
	s := &Server{programs: p, dir: dir, data: filepath.Join(dir, "data"), durable: durable, port: freePort()}
	t.Cleanup(func() {
		if s.process != nil {
			s.end()
		}
	})
	return s
}

// freePort returns a port that likely stays free while the server is stopped: it lies
// below the range of outgoing connections.
func freePort() int {
	return 15000 + rand.IntN(17000) // guessing it gains nothing
}

func (s *Server) initialize(t testing.TB) {
	t.Helper()
	args := []string{"-D", s.data, "-U", "postgres", "-A", "trust", "-E", "UTF8"}
	if !s.durable {
		args = append(args, "--no-sync")
	}
	if _, err := s.programs.run(t, "initdb", append(args, "--locale=C.UTF-8")...); err == nil {
		return
	}
	if out, err := s.programs.run(t, "initdb", append(args, "--locale=C")...); err != nil { // not every system has C.UTF-8
		t.Fatalf("initdb: %v\n%s", err, out)
	}
}

func (s *Server) configure(t testing.TB, settings map[string]string) {
	t.Helper()
	all := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"max_connections":         "200",
		"synchronous_commit":      "on",
		// In the data directory, where nothing remains of a killed server.
		"dynamic_shared_memory_type": "mmap",
		// A standby soon retries to reach its primary.
		"wal_retrieve_retry_interval": "200ms",
	}
	if !s.durable {
		all["fsync"] = "off"
	}
	for name, value := range settings {
		all[name] = value
	}
	var lines strings.Builder
	for name, value := range all {
		fmt.Fprintf(&lines, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	}
	s.appendTo(t, "postgresql.conf", lines.String())
}

// appendTo adds lines to a file of the server's data.
func (s *Server) appendTo(t testing.TB, name, lines string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.data, name), os.O_APPEND|os.O_WRONLY, 0) // a file of the server
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(lines); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Addr returns the server's address as host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN returns the postgres:// URL of the database formsvc and the role of that name.
func (s *Server) DSN() string { return dsn(s.Addr(), nil) }

// MultiHost returns a data source name for two servers; connections go to the one that
// accepts writes at that time. A server that doesn't reply within 2 seconds is skipped.
func MultiHost(a, b *Server) string {
	return dsn(a.Addr()+","+b.Addr(), url.Values{"target_session_attrs": {"read-write"}, "connect_timeout": {"2"}})
}

func dsn(hosts string, query url.Values) string {
	if query == nil {
		query = url.Values{}
	}
	query.Set("sslmode", "disable")
	return "postgres://formsvc@" + hosts + "/formsvc?" + query.Encode()
}

// Exec runs statements, separated by semicolons, as the superuser in the database
// formsvc.
func (s *Server) Exec(t testing.TB, statements string) {
	t.Helper()
	s.execIn(t, "formsvc", statements)
}

// Query runs a statement as the superuser in the database formsvc and returns its rows as
// text; NULL is the empty string.
func (s *Server) Query(t testing.TB, statement string) [][]string {
	t.Helper()
	return s.execIn(t, "formsvc", statement)
}

// Terminate ends every connection of the role formsvc, to any database, and returns their
// number.
func (s *Server) Terminate(t testing.TB) int {
	t.Helper()
	rows := s.execIn(t, "postgres", "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'formsvc'")
	n, err := strconv.Atoi(rows[0][0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// execIn runs statements as the superuser and returns the rows of the last one.
func (s *Server) execIn(t testing.TB, database, statements string) [][]string {
	t.Helper()
	rows, err := s.try(database, statements)
	if err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
	return rows
}

func (s *Server) try(database, statements string) (rows [][]string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgconn.Connect(ctx, "postgres://postgres@"+s.Addr()+"/"+database+"?sslmode=disable")
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	results, err := conn.Exec(ctx, statements).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	for _, values := range results[len(results)-1].Rows {
		row := make([]string, len(values))
		for i, value := range values {
			row[i] = string(value)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// await waits until a query returns want.
func (s *Server) await(t testing.TB, want, statement string) {
	t.Helper()
	var rows [][]string
	var err error
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if rows, err = s.try("postgres", statement); err == nil && len(rows) == 1 && rows[0][0] == want {
			return
		}
	}
	t.Fatalf("%s: %v, %v, want %s; the end of the server's log:\n%s", statement, rows, err, want, s.log())
}

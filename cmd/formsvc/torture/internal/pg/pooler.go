package pg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn" // for tests of a command, where everything meets
)

// Pooler starts PgBouncer in transaction mode in front of a server. It returns the data
// source name of the role and the database formsvc through it, with
// default_query_exec_mode=exec: PgBouncer before 1.21 can't keep prepared statements.
//
// PgBouncer runs until the test ends, and reconnects to the server after a restart.
// Without PgBouncer the test is skipped, or fails under CI=true.
func Pooler(t testing.TB, s *Server) string {
	t.Helper()
	program := "/usr/sbin/pgbouncer" // Debian's path, which is not in every PATH
	if found, err := exec.LookPath("pgbouncer"); err == nil {
		program = found
	}
	if _, err := os.Stat(program); err != nil {
		need(t, "PgBouncer")
	}
	dir, err := os.MkdirTemp(s.dir, "pooler.") //nolint:usetesting // the account may not enter the test's directory
	if err != nil {
		t.Fatal(err)
	}
	if err := s.programs.account.own(dir); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	for range 20 {
		pooler := &Server{port: freePort()}
		config := filepath.Join(dir, "pgbouncer.ini")
		s.write(t, filepath.Join(dir, "users.txt"), "\"formsvc\" \"\"\n")
		s.write(t, config, poolerConfig(s.port, pooler.port, dir))
		p := s.programs.launch(t, log, program, config)
		t.Cleanup(func() {
			_ = p.Kill()
			<-p.ended
		})
		name := pooler.DSN()
		if says(p, log, "listening on "+pooler.Addr()) && connects(t, p, name) {
			return name + "&default_query_exec_mode=exec"
		}
		if !strings.Contains(tail(log), "Address already in use") {
			break
		}
	}
	t.Fatalf("PgBouncer did not start; the end of its log:\n%s", tail(log))
	return ""
}

func poolerConfig(server, port int, dir string) string {
	return fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s/users.txt
pool_mode = transaction
default_pool_size = 20
max_client_conn = 1000
ignore_startup_parameters = extra_float_digits
server_login_retry = 1
`, server, port, dir)
}

// write writes a file that belongs to the account that runs the server.
func (s *Server) write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.programs.account.own(file); err != nil {
		t.Fatal(err)
	}
}

// says waits for a line that ends with a text in the log of a process, and reports whether it
// appears before the process ends: another program may have its port.
func says(p *process, log, text string) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if b, _ := os.ReadFile(log); strings.Contains(string(b), text+"\n") { // a missing log is empty
			return true
		}
		select {
		case <-p.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

// connects waits until the server replies through a process, and reports whether it does
// before the process ends.
func connects(t testing.TB, p *process, dsn string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		if conn, err := pgconn.Connect(ctx, dsn); err == nil {
			_ = conn.Close(ctx)
			return true
		}
		select {
		case <-p.ended:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

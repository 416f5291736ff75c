//go:build long

package main_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/storage/finding"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// The doctor finds mistakes in the settings of a Postgres server.
func TestDoctorFindsPostgresSettings(t *testing.T) {
	t.Parallel()
	postgrestest.DSN(t) // skips, or fails in CI, where there is none
	server := anotherServer(t)
	admin, err := sql.Open("pgx", strings.Replace(server, "formsvc@", "postgres@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	for _, text := range []string{
		"ALTER SYSTEM SET full_page_writes = off", "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()",
		"SELECT pg_create_physical_replication_slot('forgotten', true)",
	} {
		if _, err := admin.ExecContext(context.Background(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	w := &filing{dsn: server, place: places()["disk"](t)}
	eventually(t, "the server has read its settings", func() bool {
		d := w.examine(t, nil)
		return strings.Contains(d.out, `"full_page_writes","level":"warning"`)
	})
	d := w.examine(t, nil)
	d.says(t, finding.Problem, "fsync", "off", "loses its power")
	d.says(t, finding.Warning, "full_page_writes", "off", "ZFS")
	d.says(t, finding.Warning, "replication slots", "forgotten", "pg_drop_replication_slot")
	d.says(t, finding.Warning, "schema", "no tables", "migrate up")
}

// The doctor finds a pooler, and checks that the data source name fits it.
func TestDoctorFindsPooler(t *testing.T) {
	t.Parallel()
	postgrestest.DSN(t) // skips, or fails in CI, where there is none
	w := &filing{dsn: pooler(t, os.Getenv(postgrestest.Env)), place: places()["disk"](t)}
	d := w.examine(t, nil)
	d.says(t, finding.Warning, "pooler", "in between", "default_query_exec_mode=exec")
	w.dsn += "&default_query_exec_mode=exec"
	d = w.examine(t, nil)
	d.says(t, finding.OK, "pooler", "in between", "")
}

// The doctor reports a server that accepts connections but never replies.
func TestDoctorReportsSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	w := &filing{dsn: "postgres://formsvc@" + l.Addr().String() + "/formsvc?sslmode=disable", place: places()["disk"](t)}
	d := w.examine(t, nil)
	d.says(t, finding.Problem, "database", "can't be reached", "See that the server runs")
}

// pooler starts PgBouncer in front of a server, in transaction mode.
func pooler(t testing.TB, server string) string {
	t.Helper()
	program := lookFor(t, "pgbouncer", "/usr/sbin/pgbouncer") // where Debian has it, which is not in every PATH
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddrs(t, 1)[0]
	dir, err := os.MkdirTemp("", "formsvc-pooler-") //nolint:usetesting // others must get into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"+
		"auth_type = trust\nauth_file = %s/users.txt\npool_mode = transaction\nignore_startup_parameters = extra_float_digits\n", u.Port(), portOf(t, addr), dir)
	for _, f := range []struct{ name, text string }{{config, text}, {filepath.Join(dir, "users.txt"), "\"formsvc\" \"\"\n"}} {
		if err := os.WriteFile(f.name, []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{config}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		args = []string{"-u", "postgres", config}
	}
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.WaitDelay = patience
	var log output
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	u.Host = addr
	eventually(t, "PgBouncer answers", func() bool {
		db, err := sql.Open("pgx", u.String()+"&default_query_exec_mode=exec")
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // another process may have taken the port
			err = db.PingContext(ctx)
			cancel()
			_ = db.Close()
		}
		if err != nil && strings.Contains(log.String(), "FATAL") {
			t.Fatal(log.String())
		}
		return err == nil
	})
	return u.String()
}

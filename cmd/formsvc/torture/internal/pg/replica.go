package pg

import (
	"fmt"
	"os"
	"testing"
)

// Standby starts a synchronous standby of the server. From then on, every commit waits
// for it. The server must have no other standby.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby := newServer(t, s.programs, s.durable)
	standby.Rejoin(t, s)
	return standby
}

// Promote makes a standby accept writes and returns when it does. Commits wait for no
// standby until one joins.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if out, err := s.programs.run(t, "pg_ctl", "-D", s.data, "-w", "-t", "60", "promote"); err != nil {
		t.Fatalf("pg_ctl promote: %v\n%s\n%s", err, out, s.log())
	}
	s.await(t, "f", "SELECT pg_is_in_recovery()")
}

// Rejoin makes the server a synchronous standby of another, as Standby does. It kills the
// server if it runs, and replaces its data by a copy of the other's. An old primary comes
// back this way and loses the writes that the new one lacks. It keeps its port.
func (s *Server) Rejoin(t testing.TB, primary *Server) {
	t.Helper()
	s.Stop(t, Kill)
	if err := os.RemoveAll(s.data); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("standby_%d", s.port)
	args := []string{
		"-D", s.data, "-R", "-X", "stream", "--checkpoint=fast",
		"-d", fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s", primary.port, name),
	}
	if !s.durable {
		args = append(args, "--no-sync")
	}
	if out, err := s.programs.run(t, "pg_basebackup", args...); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	// The copy may name a standby of the other, which the server must not wait for after its promotion. The last line wins.
	s.appendTo(t, "postgresql.auto.conf", "synchronous_standby_names = ''\n")
	s.start(t)
	primary.execIn(t, "postgres", fmt.Sprintf("ALTER SYSTEM SET synchronous_standby_names = '%s'", name))
	primary.execIn(t, "postgres", "SELECT pg_reload_conf()")
	primary.await(t, "streaming sync",
		fmt.Sprintf("SELECT state || ' ' || sync_state FROM pg_stat_replication WHERE application_name = '%s'", name))
}

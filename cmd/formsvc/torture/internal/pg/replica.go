package pg

import (
	"fmt"
	"os"
	"testing"
)

// Standby starts a standby of the server, which every commit waits for from then
// on: when Standby returns, it is synchronous. The server must have no other.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby := newServer(t, s.programs, s.durable)
	standby.Rejoin(t, s)
	return standby
}

// Promote makes a standby a server that takes writes, and returns when it does.
// It waits for no standby, until one joins it.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if out, err := s.programs.run(t, "pg_ctl", "-D", s.data, "-w", "-t", "60", "promote"); err != nil {
		t.Fatalf("pg_ctl promote: %v\n%s\n%s", err, out, s.log())
	}
	s.await(t, "f", "SELECT pg_is_in_recovery()")
}

// Rejoin makes the server a synchronous standby of another, as Standby does: it
// is killed if it runs, and its data are replaced by a copy of the other's. An
// old primary comes back this way, whatever it wrote that the new one does not
// have. It keeps its port.
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
	// The copy may name a standby of the other, which the server must not wait for when it is promoted. The last line counts.
	s.appendTo(t, "postgresql.auto.conf", "synchronous_standby_names = ''\n")
	s.start(t)
	primary.execIn(t, "postgres", fmt.Sprintf("ALTER SYSTEM SET synchronous_standby_names = '%s'", name))
	primary.execIn(t, "postgres", "SELECT pg_reload_conf()")
	primary.await(t, "streaming sync",
		fmt.Sprintf("SELECT state || ' ' || sync_state FROM pg_stat_replication WHERE application_name = '%s'", name))
}

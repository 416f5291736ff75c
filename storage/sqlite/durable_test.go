package sqlite

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These are the settings of the connections that write. With a write-ahead log and
// synchronous=FULL SQLite flushes the log before a commit returns. A checkpoint flushes the
// log and then the database.
func TestCommitsAreFlushed(t *testing.T) {
	t.Parallel()
	s := must(Open(t.Context(), filepath.Join(t.TempDir(), "forms.db"), nil))
	t.Cleanup(func() { _ = s.Close() })
	w, ok := s.writer.(*pinnedWriter)
	if !ok {
		t.Fatalf("it writes with a %T", s.writer)
	}
	mover := must(s.checkpoints.db.Conn(t.Context()))
	defer func() { _ = mover.Close() }()
	for name, conn := range map[string]*sql.Conn{"the writer": w.conn, "the checkpointer": mover} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2"} {
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s is %s, want %s (%v)", name, pragma, got, want, err)
			}
		}
	}
}

// Open fails if a pragma has another effect than it should.
func TestPragmasAreChecked(t *testing.T) {
	t.Parallel()
	good := []string{"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "secure_delete(1)"}
	for _, bad := range []string{
		"", "journal_mode(DELETE)", "synchronous(NORMAL)", "synchronous(OFF)", "foreign_keys(0)", "secure_delete(0)",
	} {
		name, _, _ := strings.Cut(bad, "(")
		pragmas := slices.Clone(good)
		if i := slices.IndexFunc(pragmas, func(p string) bool { return bad != "" && strings.HasPrefix(p, name+"(") }); i >= 0 {
			pragmas[i] = bad
		}
		db, err := sql.Open("sqlite", dsn(filepath.Join(t.TempDir(), "forms.db"), new((*Options)(nil).withDefaults()), pragmas...))
		noError(t, err)
		conn := must(db.Conn(t.Context()))
		err = checkPragmas(t.Context(), conn)
		if (err == nil) != (bad == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", bad, err)
		}
		noError(t, errors.Join(conn.Close(), db.Close()))
	}
}

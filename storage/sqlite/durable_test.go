package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// TestCommitsAreFlushed looks at the connections that write. With a write-ahead log
// and synchronous=FULL SQLite flushes the log before a commit returns, and the log and then
// the database when it moves the one into the other.
func TestCommitsAreFlushed(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "forms.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w, ok := s.writer.(*pinnedWriter)
	if !ok {
		t.Fatalf("it writes with a %T", s.writer)
	}
	mover, err := s.checkpoints.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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

// TestPragmasAreChecked has pragmas with another effect than they should have.
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
		if err != nil {
			t.Fatal(err)
		}
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = checkPragmas(t.Context(), conn)
		if (err == nil) != (bad == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", bad, err)
		}
		if err := errors.Join(conn.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// brokenDisk is a connection whose commits fail.
type brokenDisk struct {
	bun.IConn

	failure    error
	statements []string
}

func (b *brokenDisk) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	b.statements = append(b.statements, query)
	if query == "COMMIT" {
		return nil, b.failure
	}
	return nil, nil //nolint:nilnil // nobody looks at it
}

// brokenWriter writes on a broken disk.
type brokenWriter struct{ disk *brokenDisk }

func (w brokenWriter) inTx(ctx context.Context, do func(c bun.IConn) error) error {
	return inTx(ctx, w.disk, do)
}
func (w brokenWriter) alone(_ context.Context, do func(c bun.IConn) error) error { return do(w.disk) }
func (w brokenWriter) close() error                                              { return nil }

// TestFailedCommitIsUnknown has a commit fail, of which nobody knows what became of
// it: no unit of it is tried again, and each is told.
func TestFailedCommitIsUnknown(t *testing.T) {
	t.Parallel()
	disk := &brokenDisk{failure: errors.New("disk I/O error")}
	s := newStore(brokenWriter{disk}, nil, nil, new((*Options)(nil).withDefaults()))
	ran := 0
	group := make([]*bunstore.Unit, 3)
	for i := range group {
		group[i] = &bunstore.Unit{Do: func(context.Context, bun.IConn) error { ran++; return nil }}
	}
	s.writeGroup(group)
	for i, u := range group {
		if !errors.Is(u.Err, formsvc.ErrUnknownOutcome) || !errors.Is(u.Err, disk.failure) {
			t.Errorf("unit %d: %v, want ErrUnknownOutcome and its cause", i, u.Err)
		}
	}
	if ran != len(group) {
		t.Errorf("%d units were run, want each of %d once: %q", ran, len(group), disk.statements)
	}
}

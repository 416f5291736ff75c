//go:build long

package sqlite_test

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/sqlite"
)

// statements records the statements that bun sends.
type statements struct{ list []string }

func (*statements) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (s *statements) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	s.list = append(s.list, e.Query)
}

// searched matches the steps of plans whose cost depends only on what is found.
var searched = regexp.MustCompile(`^(SEARCH \w+ USING .*(\(|AND )(\w*id|about)(=|>)\?.*|MULTI-INDEX OR|INDEX \d+|USE TEMP B-TREE FOR ORDER BY)$`)

// An erasure uses index look-ups, whatever statistics SQLite has.
func TestErasurePlans(t *testing.T) {
	t.Parallel()
	for _, analyzed := range []bool{false, true} {
		db := raw(t, filepath.Join(t.TempDir(), "forms.db"))
		var seen statements
		s := sqlite.New(db.WithQueryHook(&seen), nil)
		t.Cleanup(func() { _ = s.Close() })
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := filled(t, s)
		if analyzed {
			if _, err := db.ExecContext(t.Context(), "ANALYZE"); err != nil {
				t.Fatal(err)
			}
		}
		seen.list = nil
		out, err := s.Erase(t.Context(), e)
		if err != nil || out.Responses == 0 || out.Signatures == 0 || len(seen.list) < 10 {
			t.Fatalf("INVALID: %+v, %v by %d statements", out, err, len(seen.list))
		}
		for _, statement := range seen.list {
			if strings.HasPrefix(statement, "INSERT") {
				continue
			}
			for _, step := range sqlite.Steps(t, db.DB, statement) {
				if !searched.MatchString(step) || strings.Contains(step, "(account_id=?)") && !strings.Contains(statement, "formsvc_webhooks") {
					t.Errorf("analyzed %t: %s\n%s", analyzed, step, statement)
				}
			}
		}
	}
}

//go:build long

package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// statements records the statements that bun sends.
type statements struct{ list []string }

func (*statements) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (s *statements) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	s.list = append(s.list, e.Query)
}

// searched matches the steps of plans whose cost depends only on what is found.
var searched = regexp.MustCompile(`^(SEARCH \w+ USING .*(\(|AND )(\w*id|about)(=|>)\?.*|MULTI-INDEX OR|INDEX \d+|USE TEMP B-TREE FOR ORDER BY|` +
	`SCAN n USING INDEX formsvc_notices_open|SCAN (u|held)|SCAN (\d+ )?CONSTANT ROWS?|(MATERIALIZE|CO-ROUTINE) \w+|` +
	`SCAN w LEFT-JOIN)$`) // of webhooks, when there was one as SQLite analyzed them

// An erasure, and what the delivery engine and the service ask for in the background, use
// index look-ups, whatever statistics SQLite has.
func TestErasurePlans(t *testing.T) {
	t.Parallel()
	for _, analyzed := range []bool{false, true} {
		db := raw(t, filepath.Join(t.TempDir(), "forms.db"))
		var seen statements
		s := sqlite.NewOn(db.WithQueryHook(&seen))
		t.Cleanup(func() { _ = s.Close() })
		noError(t, s.Migrate(t.Context()))
		e := filled(t, s)
		if analyzed {
			must(db.ExecContext(t.Context(), "ANALYZE"))
		}
		seen.list = nil
		_, err1 := s.EventsAbout(t.Context(), e.Responses[0], 10)
		_, err2 := s.Failures(t.Context(), time.Now(), time.Now(), 10)
		err3 := s.UseKeys(t.Context(), []formsvc.KeyUse{{AccountID: e.AccountID, ID: e.AccountID, At: time.Now()}})
		if err := errors.Join(err1, err2, err3); err != nil || len(seen.list) < 4 {
			t.Fatal(err, seen.list)
		}
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

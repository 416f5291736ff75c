package thirdparty_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/formsvc/toolkit/webhook"
)

// An effect and its record commit together or not at all.
func TestOnce(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, db *sql.DB, d *webhook.SQLDeduper, _ *clock) {
		must(db.ExecContext(t.Context(), "CREATE TABLE effects (id TEXT)"))
		failed := errors.New("failed after the effect")
		once := func(end func() error) (panicked any, err error) {
			defer func() { panicked = recover() }()
			return nil, d.Once(t.Context(), eventID, func(tx *sql.Tx) error {
				if _, err := tx.ExecContext(t.Context(), "INSERT INTO effects (id) VALUES ('"+eventID+"')"); err != nil {
					t.Error(err)
				}
				return end()
			})
		}
		effects := func(want int) {
			t.Helper()
			var n int
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM effects").Scan(&n); err != nil || n != want {
				t.Errorf("%d effects, %v, want %d", n, err, want)
			}
		}
		if _, err := once(func() error { return failed }); !errors.Is(err, failed) {
			t.Errorf("got %v, want the effect's error", err)
		}
		effects(0)
		if panicked, _ := once(func() error { panic("at the disco") }); panicked != "at the disco" {
			t.Errorf("panicked with %v", panicked)
		}
		effects(0)
		for range 2 {
			if _, err := once(func() error { return nil }); err != nil {
				t.Error(err)
			}
			effects(1)
		}
		if got := begin(t, d, eventID); got != webhook.Done {
			t.Errorf("the event is %v, want done", got)
		}
	})
}

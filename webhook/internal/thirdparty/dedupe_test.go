package thirdparty_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook"
)

// A clock is set by the test.
type clock struct{ nanoseconds atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanoseconds.Store(sentAt.UnixNano())
	return c
}

func (c *clock) Now() time.Time           { return time.Unix(0, c.nanoseconds.Load()) }
func (c *clock) advance(by time.Duration) { c.nanoseconds.Add(int64(by)) }

// openSQLite returns an empty database in a file.
func openSQLite(t *testing.T) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.db")
	db := must(sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)"))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// openPostgres returns an empty schema of a server.
func openPostgres(t *testing.T) *sql.DB {
	t.Helper()
	db := must(sql.Open("pgx", postgrestest.DSN(t)))
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(20)
	return db
}

// newSQLDeduper returns a deduper whose table exists.
func newSQLDeduper(t *testing.T, db *sql.DB, opts *webhook.SQLOptions) *webhook.SQLDeduper {
	t.Helper()
	d := must(webhook.NewSQLDeduper(db, opts))
	if _, err := db.ExecContext(t.Context(), d.Schema()); err != nil {
		t.Fatalf("%v in %s", err, d.Schema())
	}
	return d
}

// onEachDatabase runs test with a deduper on real SQLite and on real Postgres.
func onEachDatabase(t *testing.T, test func(*testing.T, *sql.DB, *webhook.SQLDeduper, *clock)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db, now := openSQLite(t), newClock()
		test(t, db, newSQLDeduper(t, db, &webhook.SQLOptions{QuestionMarks: true, Now: now.Now}), now)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db, now := openPostgres(t), newClock()
		test(t, db, newSQLDeduper(t, db, &webhook.SQLOptions{Now: now.Now}), now)
	})
}

// onEachDeduper runs test with every Deduper.
func onEachDeduper(t *testing.T, test func(*testing.T, webhook.Deduper, *clock)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		now := newClock()
		test(t, webhook.NewMemoryDeduper(&webhook.MemoryOptions{Now: now.Now}), now)
	})
	onEachDatabase(t, func(t *testing.T, _ *sql.DB, d *webhook.SQLDeduper, now *clock) { test(t, d, now) })
}

// A step is one call, written as its first letter and the identifier, or a time
// to wait; want is the state that a Begin returns.
type step struct {
	do   string
	want webhook.State
}

func TestDeduper(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		steps []step
	}{
		{"begin and commit", []step{{"b 1", webhook.Fresh}, {"b 1", webhook.Busy}, {"c 1", 0}, {"b 1", webhook.Done}, {"b 1", webhook.Done}}},
		{"begin and abort", []step{{"b 1", webhook.Fresh}, {"a 1", 0}, {"b 1", webhook.Fresh}, {"b 1", webhook.Busy}}},
		{"events are apart", []step{{"b 1", webhook.Fresh}, {"b 2", webhook.Fresh}, {"c 2", 0}, {"b 1", webhook.Busy}, {"a 1", 0}, {"b 2", webhook.Done}}},
		{"case counts", []step{{"b x", webhook.Fresh}, {"b X", webhook.Fresh}, {"b x ", webhook.Fresh}}},
		{"abort after commit", []step{{"b 1", webhook.Fresh}, {"c 1", 0}, {"a 1", 0}, {"b 1", webhook.Done}}},
		{"abort of nothing", []step{{"a 1", 0}, {"b 1", webhook.Fresh}}},
		{"commit again", []step{{"b 1", webhook.Fresh}, {"c 1", 0}, {"c 1", 0}, {"b 1", webhook.Done}}},
		{"commit without a reservation", []step{{"c 1", 0}, {"b 1", webhook.Done}}},
		{"almost lapsed", []step{{"b 1", webhook.Fresh}, {"59.999s", 0}, {"b 1", webhook.Busy}}},
		{"lapsed", []step{{"b 1", webhook.Fresh}, {"1m", 0}, {"b 1", webhook.Fresh}, {"b 1", webhook.Busy}}},
		{"a lapsed reservation starts over", []step{{"b 1", webhook.Fresh}, {"1m", 0}, {"b 1", webhook.Fresh}, {"59s", 0}, {"b 1", webhook.Busy}}},
		{"commit after the lapse", []step{{"b 1", webhook.Fresh}, {"2m", 0}, {"c 1", 0}, {"b 1", webhook.Done}}},
		{"commit beside a successor", []step{{"b 1", webhook.Fresh}, {"1m", 0}, {"b 1", webhook.Fresh}, {"c 1", 0}, {"a 1", 0}, {"b 1", webhook.Done}}},
		{"handled events do not lapse", []step{{"b 1", webhook.Fresh}, {"c 1", 0}, {"23h", 0}, {"b 1", webhook.Done}}},
		{"odd identifiers", []step{{"b '; DROP TABLE webhook_events; --", webhook.Fresh}, {"b é🔑", webhook.Fresh}, {"b é🔑", webhook.Busy}, {"b " + strings.Repeat("x", 255), webhook.Fresh}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			onEachDeduper(t, func(t *testing.T, d webhook.Deduper, now *clock) {
				for i, s := range tt.steps {
					var got webhook.State
					var err error
					switch call, id, _ := strings.Cut(s.do, " "); call {
					case "b":
						got, err = d.Begin(t.Context(), id)
					case "c":
						err = d.Commit(t.Context(), id)
					case "a":
						err = d.Abort(t.Context(), id)
					default:
						wait, failed := time.ParseDuration(call)
						now.advance(wait)
						err = failed
					}
					if err != nil || got != s.want {
						t.Fatalf("step %d, %q: got %v, %v, want %v", i, s.do, got, err, s.want)
					}
				}
			})
		})
	}
}

func TestDeduperRefusesAnEmptyIdentifier(t *testing.T) {
	t.Parallel()
	onEachDeduper(t, func(t *testing.T, d webhook.Deduper, _ *clock) {
		if state, err := d.Begin(t.Context(), ""); err == nil || state != 0 {
			t.Errorf("Begin: got %v, %v", state, err)
		}
		if err := d.Commit(t.Context(), ""); err == nil {
			t.Error("Commit: no error")
		}
		if err := d.Abort(t.Context(), ""); err == nil {
			t.Error("Abort: no error")
		}
	})
}

func TestDeduperReservesForOneCaller(t *testing.T) {
	t.Parallel()
	onEachDeduper(t, func(t *testing.T, d webhook.Deduper, now *clock) {
		for _, round := range []string{"new", "lapsed"} {
			var states [4]atomic.Int64
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					state, err := d.Begin(t.Context(), eventID)
					if err != nil {
						t.Error(err)
					}
					states[state].Add(1)
				})
			}
			wg.Wait()
			if fresh, busy := states[webhook.Fresh].Load(), states[webhook.Busy].Load(); fresh != 1 || busy != 99 {
				t.Errorf("%s: %d fresh, %d busy of 100", round, fresh, busy)
			}
			now.advance(time.Minute)
		}
	})
}

// Duplicates arrive at once, some handlers fail, and the service retries what didn't get 2xx: in
// the end each event was handled once.
func TestHandlerHandlesEachEventOnce(t *testing.T) {
	t.Parallel()
	onEachDeduper(t, func(t *testing.T, d webhook.Deduper, _ *clock) {
		const events, twins = 5, 6
		var handled, failed [events]atomic.Int64
		v := must(webhook.NewVerifier([]string{secret}, &webhook.Options{Deduper: d}))
		server := httptest.NewServer(v.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			delivery, _ := webhook.FromContext(r.Context())
			var i int
			if _, err := fmt.Sscanf(delivery.EventID, "e-%d", &i); err != nil {
				t.Error(err)
			}
			if failed[i].Add(1) <= 2 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			handled[i].Add(1)
		})))
		t.Cleanup(server.Close)
		var wg sync.WaitGroup
		for i := range events * twins {
			content := fmt.Sprintf(`{"id":"e-%d","event":"response.created"}`, i%events)
			wg.Go(func() {
				for post(t, server.URL, content).StatusCode != http.StatusOK && t.Context().Err() == nil {
				}
			})
		}
		wg.Wait()
		for i := range handled {
			if n := handled[i].Load(); n != 1 {
				t.Errorf("event %d was handled %d times", i, n)
			}
		}
	})
}

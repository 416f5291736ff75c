//go:build long

package httpx_test

import (
	"bytes"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// exportMemory is the limit of memory that an export may add, however large it is.
const exportMemory = 64 << 20

// largeExport returns the number of responses in TestLargeExports and their size in bytes, several times exportMemory
// in all. FORMSVC_TEST_EXPORT_ROWS sets another number, of responses of 500 bytes.
func largeExport(t *testing.T) (rows, bytes int) {
	t.Helper()
	text := os.Getenv("FORMSVC_TEST_EXPORT_ROWS")
	if text == "" {
		return 25_000, 8_000
	}
	rows, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return rows, 500
}

// A database gives a test direct access to the store's database.
type database struct {
	*testing.T
	*sql.DB
}

func (d database) exec(query string, args ...any) {
	d.Helper()
	if _, err := d.ExecContext(d.Context(), query, args...); err != nil {
		d.Fatalf("%s: %v", query, err)
	}
}

// B9: a large export with a slow reader. Memory stays flat, and while the reader pauses no transaction is open.
func TestLargeExports(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forms.db")
		store, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		d := openDatabase(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(1000)")
		largeExports(t, store, d, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ROWS)
			INSERT INTO formsvc_responses SELECT printf('018f0000-0000-7000-8000-%012x', i), 'ACCOUNT', 'CAMPAIGN', 'R' || i,
			  'pending', 'ada@example.com', 'Ada', 'Lovelace', '{"text":{"value":["' || substr(hex(zeroblob(BYTES)), 1, BYTES) || '"]}}',
			  1, i, i, -62135596800000000, '' FROM n`, func() {
			// The log can't be emptied while a transaction reads from it.
			d.exec("CREATE TABLE IF NOT EXISTS something (x)")
			d.exec("INSERT INTO something VALUES (1)")
			var busy, frames, moved int
			if err := d.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil || busy != 0 {
				t.Errorf("checkpoint while the reader stands still: busy %d, %v", busy, err)
			}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := postgrestest.DSN(t) + "&application_name=large_exports" // other tests use the server meanwhile
		store, err := postgres.Open(t.Context(), dsn, &postgres.Options{MaxConns: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		d := openDatabase(t, "pgx", dsn)
		largeExports(t, store, d, `INSERT INTO formsvc_responses SELECT ('018f0000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid,
			'ACCOUNT', 'CAMPAIGN', 'R' || i, 'pending', 'ada@example.com', 'Ada', 'Lovelace',
			'{"text":{"value":["' || repeat('0', BYTES) || '"]}}', 1, i, i, -62135596800000000, '' FROM generate_series(1, ROWS) AS i`, func() {
			var conns, open int
			if err := d.QueryRowContext(t.Context(), `SELECT count(*), count(xact_start) FROM pg_stat_activity
				WHERE application_name = 'large_exports' AND pid <> pg_backend_pid()`).Scan(&conns, &open); err != nil || conns == 0 || open != 0 {
				t.Errorf("%d connections with %d transactions while the reader stands still, %v", conns, open, err)
			}
		})
	})
}

func openDatabase(t *testing.T, driver, name string) database {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return database{t, db}
}

// largeExports fills a campaign with the statement, and calls look while the readers pause.
func largeExports(t *testing.T, store formsvc.Store, d database, fill string, look func()) {
	t.Helper()
	w := newWorld(t, store, nil)
	campaign := w.campaign(plainCampaign)
	rows, bytes := largeExport(t)
	d.exec(strings.NewReplacer(
		"ACCOUNT", string(w.mine.account.ID), "CAMPAIGN", strings.TrimPrefix(campaign, "/v1/campaigns/"),
		"ROWS", strconv.Itoa(rows), "BYTES", strconv.Itoa(bytes),
	).Replace(fill))
	var gate writeGate
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		w.api.ServeHTTP(&gatedWriter{answer, &gate}, r)
	}))
	defer server.Close()
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that garbage of other tests doesn't count
	for _, kind := range []string{".ndjson", ".csv", ".ndjson?order=asc&status=pending"} {
		peak := watchMemory()
		body := w.slowly(server, campaign+"/responses"+kind, 512<<10)
		lines := readLines(t, kind, body, rows, &gate, look)
		if kind == ".csv" {
			lines--
		}
		added := peak()
		if lines != rows || added > exportMemory {
			t.Errorf("%s: %d lines, want %d; %d MiB of memory added, want at most %d",
				kind, lines, rows, added>>20, exportMemory>>20)
		}
		t.Logf("%s: %d responses, %.1f MiB of memory added", kind, lines, float64(added)/(1<<20))
	}
}

// readLines reads to the end and returns the number of lines. Three times on the way it pauses the server and calls
// look.
func readLines(t *testing.T, kind string, body io.Reader, rows int, gate *writeGate, look func()) (lines int) {
	t.Helper()
	chunks, result := make(chan int), make(chan error, 1)
	go func() {
		defer close(chunks)
		for buffer := make([]byte, 64<<10); ; {
			n, err := body.Read(buffer)
			chunks <- bytes.Count(buffer[:n], []byte("\n"))
			if err != nil {
				result <- err
				return
			}
		}
	}()
	var shut closedGate
	open := func() {
		if shut.open != nil {
			gate.closed.Store(nil)
			close(shut.open)
		}
		shut = closedGate{}
	}
	defer open()
	for stalls := 0; ; {
		select {
		case n, ok := <-chunks:
			if lines += n; !ok {
				if err := <-result; !errors.Is(err, io.EOF) || stalls != 3 {
					t.Fatalf("%s after %d lines: %v, and the server stood still %d times", kind, lines, err, stalls)
				}
				return lines
			}
			if stalls < 3 && shut.open == nil && lines >= stalls*rows/3 {
				shut = gate.shut()
			}
		case <-shut.inside:
			look()
			stalls++
			open()
		}
	}
}

// A writeGate pauses a server before a write, as when its client stops reading.
type writeGate struct {
	closed atomic.Pointer[closedGate]
}

type closedGate struct{ inside, open chan struct{} }

// shut closes the gate. inside gets a value when a write waits there; closing open lets it go on.
func (g *writeGate) shut() closedGate {
	c := closedGate{make(chan struct{}, 1), make(chan struct{})}
	g.closed.Store(&c)
	return c
}

// A gatedWriter waits for its gate before each write.
type gatedWriter struct {
	http.ResponseWriter
	gate *writeGate
}

func (w *gatedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *gatedWriter) Write(p []byte) (int, error) {
	if c := w.gate.closed.Load(); c != nil {
		c.inside <- struct{}{}
		<-c.open
	}
	return w.ResponseWriter.Write(p)
}

// watchMemory returns a function that ends the measurement. It returns by how many bytes the heap and the stacks grew
// at most.
func watchMemory() (peak func() int64) {
	runtime.GC()
	used := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64() + sample[1].Value.Uint64())
	}
	first := used()
	most := first
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			most = max(most, used())
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	return func() int64 {
		close(done)
		watch.Wait()
		return most - first
	}
}

package main

import (
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook"
)

// samplePayload has room for an event's number.
const samplePayload = `{"email":"respondent.0000000@example.com"}`

func TestRiverSQLite(t *testing.T) {
	t.Parallel()
	deliverAll(t, "sqlite:"+filepath.Join(t.TempDir(), "what? 50%.db"))
}

func TestRiverPostgres(t *testing.T) {
	t.Parallel()
	deliverAll(t, postgrestest.DSN(t)) // skips without Postgres
}

// deliverAll lets a process queue jobs without delivering, and another one queue more and deliver all.
func deliverAll(t *testing.T, dsn string) {
	t.Helper()
	const n = 40
	arrived := listenForPosts(t)
	do := func(w worker.Worker, what string) worker.Reply {
		t.Helper()
		r, err := w.Do(t.Context(), worker.Command{Do: what, N: n, Callers: 8})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return r
	}
	first := start(t, dsn, arrived.url)
	do(first, worker.Accept)
	if r := do(first, worker.Count); r.N != 0 || arrived.count(0) != 0 {
		t.Errorf("%d jobs are done before delivering starts", r.N)
	}
	do(first, worker.Stop)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, dsn, arrived.url)
	do(second, worker.Start)
	do(second, worker.Accept)
	arrived.wait(t, 2*n)
	do(second, worker.Stop)
	if r := do(second, worker.Count); r.N != 2*n {
		t.Errorf("%d of %d jobs are done", r.N, 2*n)
	}
	for i := range n {
		if got := arrived.count(i); got != 2 {
			t.Errorf("event %d arrived %d times, was offered twice", i, got)
		}
	}
	if _, err := second.Do(t.Context(), worker.Command{Do: worker.Post}); err == nil {
		t.Error("it does what it can't")
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func start(t *testing.T, dsn, url string) worker.Worker {
	t.Helper()
	w, _, err := newRiver(t.Context(), &worker.Config{DSN: dsn, URL: url, Body: []byte(samplePayload), Conns: 16})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// arrivals are the signed payloads that a server received, by the event's number.
type arrivals struct {
	url string

	mu     sync.Mutex
	counts map[int]int
	all    int
}

func listenForPosts(t *testing.T) *arrivals {
	t.Helper()
	a := &arrivals{counts: make(map[int]int)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		number, ok := worker.Number(body)
		if err != nil || !ok || r.Header.Get(webhook.SignatureHeader) != webhook.Sign([]byte(worker.Secret), body) {
			t.Errorf("got %q with %v, %v", body, r.Header, err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.counts[number]++
		a.all++
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

func (a *arrivals) count(number int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[number]
}

func (a *arrivals) wait(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		a.mu.Lock()
		all := a.all
		a.mu.Unlock()
		if all >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d deliveries arrived", all, n)
		}
	}
}

// TestSQLiteSyncsCommits checks that the peer waits for the disk, like the service.
func TestSQLiteSyncsCommits(t *testing.T) {
	t.Parallel()
	d, err := openSQLite(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.close() }()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2"} {
		var got string
		if err := d.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %s", pragma, got, err, want)
		}
	}
	if _, err := openSQLite(t.Context(), t.TempDir()); err == nil {
		t.Error("a directory is a database")
	}
}

// TestSQLiteRollsBack checks that a failed transaction leaves no rows, and that the only connection is free afterwards.
func TestSQLiteRollsBack(t *testing.T) {
	t.Parallel()
	w := start(t, "sqlite:"+filepath.Join(t.TempDir(), "jobs.db"), "http://127.0.0.1:1")
	defer func() { _ = w.Close() }()
	p, ok := w.(*peer[*sql.Tx])
	if !ok {
		t.Fatalf("got %T", w)
	}
	refused := errors.New("refused")
	err := p.within(t.Context(), func(tx *sql.Tx) error {
		if _, err := p.client.InsertTx(t.Context(), tx, delivery{Body: "x"}, nil); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	jobs, err := p.client.JobList(t.Context(), nil)
	if err != nil || len(jobs.Jobs) != 0 {
		t.Errorf("%d jobs are left, %v", len(jobs.Jobs), err)
	}
}

func TestRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	path := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	for _, cfg := range []worker.Config{
		{DSN: path, Body: []byte("no number"), Conns: 1}, {DSN: path, Body: []byte(samplePayload)},
		{DSN: "postgres://user:secret@127.0.0.1:x/", Body: []byte(samplePayload), Conns: 1},
	} {
		if _, _, err := newRiver(t.Context(), &cfg); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
}

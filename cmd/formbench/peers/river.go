package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // registers the driver "sqlite" with database/sql

	"github.com/formsvc/toolkit/webhook"
)

// The settings that suited River best. With its defaults, it delivers at most ten times a second for each worker.
const (
	workers           = 256
	poolConns         = 48
	gcPercent         = 200 // as in "formsvc serve"
	fetchCooldown     = 2 * time.Millisecond
	fetchPollInterval = 50 * time.Millisecond
)

// completedJobs counts finished jobs.
const completedJobs = "SELECT count(*) FROM river_job WHERE state = 'completed'"

// serveRiver inserts a job for each POST, in a transaction of its own, and delivers it to the address.
func serveRiver(ctx context.Context, dsn, address, secret string) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	s := &sender{address: address, secret: []byte(secret), transport: &http.Transport{
		MaxIdleConns: workers, MaxIdleConnsPerHost: workers, DisableCompression: true,
	}}
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		// It is as durable as the service's: a write-ahead log that is synced at every commit.
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
		if err != nil {
			return err
		}
		db.SetMaxOpenConns(1) // as its driver recommends: with more, commits fail because the database is locked
		count := func(ctx context.Context, n *int) error { return db.QueryRowContext(ctx, completedJobs).Scan(n) }
		return errors.Join(serve(ctx, riversqlite.New(db), s, count), db.Close())
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return errors.New("the database is not valid") // the error may contain a password
	}
	cfg.MaxConns = poolConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	count := func(ctx context.Context, n *int) error { return pool.QueryRow(ctx, completedJobs).Scan(n) }
	return serve(ctx, riverpgxv5.New(pool), s, count)
}

// A delivery is the job of sending one payload. A string is stored unchanged.
type delivery struct {
	Body string `json:"body"`
}

// Kind names the job for River.
func (delivery) Kind() string { return "delivery" }

// A sender works on jobs: it signs a payload and posts it.
type sender struct {
	river.WorkerDefaults[delivery]
	address   string
	secret    []byte
	transport *http.Transport
}

// Timeout implements river.Worker: a receiver may hold deliveries back.
func (s *sender) Timeout(*river.Job[delivery]) time.Duration { return -1 }

// Work makes one attempt.
func (s *sender) Work(ctx context.Context, job *river.Job[delivery]) error {
	body := []byte(job.Args.Body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(webhook.DeliveryHeader, strconv.FormatInt(job.ID, 10))
	req.Header.Set(webhook.SignatureHeader, webhook.Sign(string(s.secret), body))
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body) // the status decides
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	return nil
}

// serve runs River and a server with POST and GET /jobs until the context ends.
func serve[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], s *sender, count func(context.Context, *int) error) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	work := river.NewWorkers()
	river.AddWorker(work, s)
	client, err := river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		FetchCooldown: fetchCooldown, FetchPollInterval: fetchPollInterval, Workers: work, Logger: logger,
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = client.Insert(r.Context(), delivery{string(body)}, nil)
		}
		respond(w, http.StatusCreated, map[string]int{}, err)
	})
	mux.HandleFunc("GET /jobs", func(w http.ResponseWriter, r *http.Request) {
		n := 0
		err := count(r.Context(), &n)
		respond(w, http.StatusOK, map[string]int{"completed": n}, err)
	})
	listener, err := listen(ctx)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	report(listener)
	select {
	case err = <-served:
	case <-ctx.Done():
		err = server.Close()
	}
	return errors.Join(err, client.Stop(context.WithoutCancel(ctx)))
}

func respond(w http.ResponseWriter, status int, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

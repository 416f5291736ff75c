// Command peers is River, a job queue on Postgres, as a webhook sender that
// formbench compares with: a job is inserted in a transaction of its own for
// each event, and a worker signs its payload and posts it. formbench starts it.
//
// It polls far more often than by default, and has as many workers as suited it
// best: with its defaults, River delivers at most ten times a second for each
// worker.
//
// With the argument "pocketbase" it is PocketBase instead, as a server that
// formbench compares the API with.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// The settings that suited River best.
const (
	fetchCooldown     = 2 * time.Millisecond
	fetchPollInterval = 50 * time.Millisecond
	poolConns         = 48 // more than there are callers, with some for the workers
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == pocketbase.Command {
		return servePocketbase(ctx, os.Stdin, os.Stdout)
	}
	return worker.Run(ctx, os.Stdin, os.Stdout, newPeer)
}

// A delivery is the job of sending one payload. As a string it is stored as it is.
type delivery struct {
	Body string `json:"body"`
}

// Kind names the job for River.
func (delivery) Kind() string { return "delivery" }

// A sender works off jobs.
type sender struct {
	river.WorkerDefaults[delivery]
	poster *worker.Poster
}

// Work makes one attempt.
func (s *sender) Work(ctx context.Context, job *river.Job[delivery]) error {
	return s.poster.Post(ctx, strconv.FormatInt(job.ID, 10), []byte(job.Args.Body))
}

// A peer is River in one process.
type peer struct {
	body     worker.Body
	poster   *worker.Poster
	pool     *pgxpool.Pool
	client   *river.Client[pgx.Tx]
	profile  *os.File
	delivers bool
}

func newPeer(ctx context.Context, cfg *worker.Config) (_ worker.Worker, ready worker.Reply, err error) {
	p := &peer{poster: worker.NewPoster(cfg.URL, cfg.Conns)}
	if p.body, err = worker.NewBody(cfg.Body); err != nil {
		return nil, ready, err
	}
	pool, err := pgxpool.ParseConfig(cfg.DSN)
	if err != nil {
		return nil, ready, errors.New("the database is not valid")
	}
	pool.MaxConns = poolConns
	if p.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, ready, err
	}
	defer func() {
		if err != nil {
			p.pool.Close()
		}
	}()
	driver := riverpgxv5.New(p.pool)
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return nil, ready, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, ready, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &sender{poster: p.poster})
	p.client, err = river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cfg.Conns}},
		FetchCooldown: fetchCooldown, FetchPollInterval: fetchPollInterval,
		Workers: workers, Logger: logger,
	})
	if err != nil {
		return nil, ready, err
	}
	return p, ready, p.startProfile(cfg.Profile)
}

func (p *peer) startProfile(path string) (err error) {
	if path == "" {
		return nil
	}
	if p.profile, err = os.Create(path); err != nil { //nolint:gosec // formbench names the file
		return err
	}
	return pprof.StartCPUProfile(p.profile)
}

// Do obeys a command.
func (p *peer) Do(ctx context.Context, c worker.Command) (reply worker.Reply, err error) {
	switch c.Do {
	case worker.Accept:
		return worker.Offer(ctx, &c, p.accept)
	case worker.Start:
		p.delivers = true
		return reply, p.client.Start(context.WithoutCancel(ctx))
	case worker.Stop:
		return reply, p.stop(ctx)
	case worker.Count:
		err = p.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&reply.N)
		return reply, err
	}
	return reply, errors.New("the peer can't do that")
}

// accept inserts a job in a transaction of its own, as an application does that
// changes something else in it.
func (p *peer) accept(ctx context.Context, i int) error {
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		_, err := p.client.InsertTx(ctx, tx, delivery{Body: string(p.body.With(i))}, nil)
		return err
	})
}

// stop returns when everything that came of the jobs is recorded.
func (p *peer) stop(ctx context.Context) error {
	if !p.delivers {
		return nil
	}
	p.delivers = false
	return p.client.Stop(ctx)
}

// Close ends everything.
func (p *peer) Close() error {
	err := p.stop(context.Background())
	if p.profile != nil {
		pprof.StopCPUProfile()
		_ = p.profile.Close()
	}
	p.poster.Close()
	p.pool.Close()
	return err
}

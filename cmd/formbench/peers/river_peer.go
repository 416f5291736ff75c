package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// The settings that suited River best. With its defaults, it delivers at most ten
// times a second for each worker.
const (
	fetchCooldown     = 2 * time.Millisecond
	fetchPollInterval = 50 * time.Millisecond
)

// A delivery is the job of sending one payload. A string is stored unchanged.
type delivery struct {
	Body string `json:"body"`
}

// Kind names the job for River.
func (delivery) Kind() string { return "delivery" }

// A sender works on jobs.
type sender struct {
	river.WorkerDefaults[delivery]
	poster *worker.Poster
}

// Work makes one attempt.
func (s *sender) Work(ctx context.Context, job *river.Job[delivery]) error {
	return s.poster.Post(ctx, strconv.FormatInt(job.ID, 10), []byte(job.Args.Body))
}

// A database has River's jobs.
type database[TTx any] interface {
	driver() riverdriver.Driver[TTx]
	within(ctx context.Context, do func(TTx) error) error // in one transaction
	completed(ctx context.Context) (int, error)           // the number of finished jobs
	close() error
}

// A peer is River in one process: it inserts a job for each event in a transaction of its own, and a worker signs its
// payload and posts it.
type peer[TTx any] struct {
	database[TTx]
	body       worker.Body
	poster     *worker.Poster
	client     *river.Client[TTx]
	endProfile func() error
	delivers   bool
}

// newRiver creates a peer on the configured database.
func newRiver(ctx context.Context, cfg *worker.Config) (worker.Worker, worker.Reply, error) {
	if path, ok := strings.CutPrefix(cfg.DSN, "sqlite:"); ok {
		db, err := openSQLite(ctx, path)
		if err != nil {
			return nil, worker.Reply{}, err
		}
		return newPeer(ctx, db, cfg)
	}
	db, err := openPostgres(ctx, cfg.DSN)
	if err != nil {
		return nil, worker.Reply{}, err
	}
	return newPeer(ctx, db, cfg)
}

// newPeer takes over the database and closes it on failure.
func newPeer[TTx any](ctx context.Context, db database[TTx], cfg *worker.Config) (_ worker.Worker, ready worker.Reply, err error) {
	p := &peer[TTx]{database: db, poster: worker.NewPoster(cfg.URL, cfg.Conns)}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close())
		}
	}()
	if p.body, err = worker.NewBody(cfg.Body); err != nil {
		return nil, ready, err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	migrator, err := rivermigrate.New(db.driver(), &rivermigrate.Config{Logger: logger})
	if err != nil {
		return nil, ready, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, ready, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &sender{poster: p.poster})
	p.client, err = river.NewClient(db.driver(), &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cfg.Conns}},
		FetchCooldown: fetchCooldown, FetchPollInterval: fetchPollInterval,
		Workers: workers, Logger: logger,
	})
	if err != nil {
		return nil, ready, err
	}
	p.endProfile, err = worker.StartProfile(cfg.Profile)
	return p, ready, err
}

// Do executes a command.
func (p *peer[TTx]) Do(ctx context.Context, c worker.Command) (reply worker.Reply, err error) {
	switch c.Do {
	case worker.Accept:
		return worker.Offer(ctx, &c, p.accept)
	case worker.Start:
		p.delivers = true
		return reply, p.client.Start(context.WithoutCancel(ctx))
	case worker.Stop:
		return reply, p.stop(ctx)
	case worker.Count:
		if reply.N, err = p.completed(ctx); err != nil {
			err = fmt.Errorf("count the jobs: %w", err)
		}
		return reply, err
	}
	return reply, errors.New("the peer can't do that")
}

// completedJobs counts finished jobs.
const completedJobs = "SELECT count(*) FROM river_job WHERE state = 'completed'"

// accept inserts a job in a transaction of its own, like an application that changes other rows in it.
func (p *peer[TTx]) accept(ctx context.Context, i int) error {
	return p.within(ctx, func(tx TTx) error {
		_, err := p.client.InsertTx(ctx, tx, delivery{Body: string(p.body.With(i))}, nil)
		return err
	})
}

// stop returns when the outcomes of all jobs are recorded.
func (p *peer[TTx]) stop(ctx context.Context) error {
	if !p.delivers {
		return nil
	}
	p.delivers = false
	return p.client.Stop(ctx)
}

// Close stops delivering, and closes the connections and the database.
func (p *peer[TTx]) Close() error {
	err := p.stop(context.Background())
	err = errors.Join(err, p.endProfile())
	p.poster.Close()
	return errors.Join(err, p.close())
}

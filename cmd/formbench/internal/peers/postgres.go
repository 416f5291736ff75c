package peers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/formsvc"
)

// postgres measures new responses beside a handler with one statement per request,
// and beside rows that are inserted without any server in front.
func (p *runner) postgres(ctx context.Context, round int) error {
	conns := slices.DeleteFunc(slices.Clone(p.PeerConns), func(n int) bool { return n == 1 }) // there is nothing to share
	systems := []string{bench.APISystem, bench.SingleSystem, bench.InsertSystem}
	for _, c := range requests.Plan(bench.PeerPostgresPart, bench.PostgresStore, []string{bench.CreateWhat}, conns, []int{0}, systems, round) {
		measure := func() error { return p.createCell(ctx, &c, 0) }
		if c.System == bench.InsertSystem {
			measure = func() error { return p.insertCell(ctx, &c) }
		}
		if err := measure(); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// insertCell measures and notes single rows, each by a prepared statement of its
// own transaction, as pgbench would insert them.
func (p *runner) insertCell(ctx context.Context, c *result.Cell) (err error) {
	db, err := database.New(ctx, bench.PostgresStore, p.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Drop()) }()
	if err := database.OnServer(ctx, db.DSN, server.SingleSchema); err != nil {
		return err
	}
	pool, err := server.OpenPool(ctx, db.DSN, c.Conns)
	if err != nil {
		return err
	}
	begin := time.Now().Add(p.Warmup)
	l := &inserts{pool: pool, conns: c.Conns, begin: begin, end: begin.Add(p.Duration)}
	s, before, after, err := l.watched(ctx)
	pool.Close()
	if err != nil {
		return err
	}
	requests.NewMeasured(s, before, after, p.Duration).Figures(c)
	if err := p.Note(c); err != nil {
		return err
	}
	return singleHolds(ctx, db.DSN, s.Answered, "single_responses")
}

// inserts is a closed loop of rows.
type inserts struct {
	pool       *pgxpool.Pool
	conns      int
	begin, end time.Time
}

// watched inserts until the end and reads the CPU times around. No server is
// counted: there is only this process, and Postgres.
func (l *inserts) watched(ctx context.Context) (all loadgen.Sample, before, after proc.Times, err error) {
	parts := make([]loadgen.Sample, l.conns)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() { parts[i].Err = l.work(ctx, &parts[i]) })
	}
	go func() { wg.Wait(); close(done) }()
	loadgen.WaitUntil(l.begin, done)
	before, err = proc.ReadTimes()
	loadgen.WaitUntil(l.end, done)
	after, afterErr := proc.ReadTimes()
	<-done
	for i := range parts {
		all.Add(&parts[i])
	}
	slices.Sort(all.Latencies)
	return all, before, after, errors.Join(all.Err, err, afterErr)
}

func (l *inserts) work(ctx context.Context, s *loadgen.Sample) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	in := fixture.NewInput(fixture.Submission(0))
	respondent, err := json.Marshal(in.User)
	if err != nil {
		return err
	}
	answers, err := json.Marshal(in.Responses)
	if err != nil {
		return err
	}
	for {
		start := time.Now()
		if !start.Before(l.end) {
			return nil
		}
		if _, err := conn.Exec(ctx, server.InsertResponse, rand.Text(), string(database.InventedWorld().Campaign.ID), rand.Text()[:11],
			formsvc.StatusPending, string(respondent), string(answers), start); err != nil {
			return err
		}
		end := time.Now()
		s.Answered++
		if !end.Before(l.begin) && end.Before(l.end) {
			s.Latencies = append(s.Latencies, end.Sub(start))
		}
	}
}

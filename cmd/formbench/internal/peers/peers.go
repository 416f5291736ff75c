// Package peers measures the API beside PocketBase, on SQLite, and beside a plain handler on Postgres.
package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// A runner measures the parts of a run that compare with peers.
type runner struct {
	*bench.Bench
	template string // a PocketBase directory with empty collections
	full     string // the same with -peer-fill responses
	ours     *database.Database
	world    database.World // of our filled database
}

// Run measures the parts.
func Run(ctx context.Context, b *bench.Bench) (err error) {
	p := &runner{Bench: b}
	defer func() { err = errors.Join(err, p.close()) }()
	for _, part := range []struct {
		name, store string
		run         func(ctx context.Context, round int) error
	}{
		{bench.PeerCreatePart, bench.SQLiteStore, p.creates}, {bench.PeerReadPart, bench.SQLiteStore, p.reads}, {bench.PeerFilesPart, bench.SQLiteStore, p.uploads},
		{bench.PeerStartPart, bench.SQLiteStore, p.starts}, {bench.PeerPostgresPart, bench.PostgresStore, p.postgres},
	} {
		if !slices.Contains(p.Only, part.name) || !slices.Contains(p.Stores, part.store) {
			continue
		}
		for round := range p.Rounds {
			if err := part.run(ctx, round); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

// Prepare checks whether there is PocketBase to compare with. Without it, the parts that need it are skipped.
func Prepare(b *bench.Bench) (err error) {
	if b.PeerProgram != "" {
		b.PeerProgram, err = filepath.Abs(b.PeerProgram)
		return err
	}
	without := func(part string) bool {
		return slices.Contains(bench.PeerParts(), part) && part != bench.PeerPostgresPart
	}
	if slices.ContainsFunc(b.Only, without) {
		b.Warn("NOT MEASURED: PocketBase, since -peers does not name the program of cmd/formbench/peers")
		b.Only = slices.DeleteFunc(b.Only, without)
	}
	return nil
}

// close removes the databases that all rounds share.
func (p *runner) close() (err error) {
	for _, dir := range []string{p.template, p.full} {
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	if p.ours != nil {
		err = errors.Join(err, p.ours.Drop())
	}
	return err
}

// creates measures new responses: as fast as they are answered, and at a rate that both systems can carry.
func (p *runner) creates(ctx context.Context, round int) error {
	systems := []string{bench.CeilingSystem, bench.APISystem, bench.PocketSystem, bench.TokenSystem, bench.FullSystem, bench.BatchSystem}
	most, rate := slices.Max(p.PeerConns), 0.0
	for _, c := range requests.Plan(bench.PeerCreatePart, bench.SQLiteStore, []string{bench.CreateWhat}, p.PeerConns, []int{0}, systems, round) {
		if err := p.createCell(ctx, &c, 0); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
		if c.System == bench.PocketSystem && c.Conns == most {
			rate, _ = c.Get("requests/s")
		}
	}
	systems = []string{bench.APISystem, bench.PocketSystem}
	for _, c := range requests.Plan(bench.PeerCreatePart, bench.SQLiteStore, []string{bench.DueWhat}, []int{most}, []int{0}, systems, round) {
		if err := p.createCell(ctx, &c, rate/2); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// createCell measures and notes a cell, as an open loop if there is a rate.
func (p *runner) createCell(ctx context.Context, c *result.Cell, rate float64) error {
	s, err := p.contender(ctx, c)
	if err != nil {
		return err
	}
	return requests.Create(ctx, p.Bench, c, s, &loadgen.Load{Rate: rate}, func(m *requests.Measured) { m.Figures(c) })
}

// contender returns the contender of a cell.
func (p *runner) contender(ctx context.Context, c *result.Cell) (*requests.Contender, error) {
	switch c.System {
	case bench.CeilingSystem, bench.APISystem:
		return requests.Ours(ctx, p.Bench, c, c.Store, server.Config{})
	case bench.SingleSystem:
		return p.single(ctx, c)
	}
	s, err := p.newPocket(ctx)
	if err != nil {
		return nil, err
	}
	kept := []string{pocketbase.Responses}
	create := createPocket
	switch c.System {
	case bench.TokenSystem:
		kept[0] = pocketbase.Private
	case bench.BatchSystem:
		kept, create = []string{pocketbase.Responses, pocketbase.Events, pocketbase.Deliveries}, batchPocket
	}
	return &requests.Contender{
		Start: func(ctx context.Context) (*server.Process, error) { return p.startPocket(ctx, c, s.dir) },
		Creates: func(token string) (loadgen.Workload, error) {
			if c.System != bench.TokenSystem {
				token = ""
			}
			return create(ctx, kept[0], token)
		},
		Holds: func(ctx context.Context, answered, _ int) error { return s.holds(ctx, answered, kept...) },
		Drop:  s.drop,
	}, nil
}

// postgres measures new responses beside a handler with one statement per request.
func (p *runner) postgres(ctx context.Context, round int) error {
	conns := slices.DeleteFunc(slices.Clone(p.PeerConns), func(n int) bool { return n == 1 }) // one connection shares no commits
	systems := []string{bench.APISystem, bench.SingleSystem}
	for _, c := range requests.Plan(bench.PeerPostgresPart, bench.PostgresStore, []string{bench.CreateWhat}, conns, []int{0}, systems, round) {
		if err := p.createCell(ctx, &c, 0); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// single returns the handler with its tables.
func (p *runner) single(ctx context.Context, c *result.Cell) (*requests.Contender, error) {
	db, err := database.New(ctx, bench.PostgresStore, p.Dir)
	if err != nil {
		return nil, err
	}
	if err := database.OnServer(ctx, db.DSN, server.SingleSchema); err != nil {
		return nil, errors.Join(err, db.Drop())
	}
	w := database.InventedWorld()
	return &requests.Contender{
		Start: func(ctx context.Context) (*server.Process, error) {
			return requests.StartOurs(ctx, p.Bench, c, server.Config{DSN: db.DSN})
		},
		Creates: func(string) (loadgen.Workload, error) { return w.Creates() },
		Holds: func(ctx context.Context, answered, _ int) error {
			for _, table := range []string{"single_responses", "single_events", "single_deliveries"} {
				n, err := database.ServerCount(ctx, db.DSN, "SELECT count(*) FROM "+table)
				if err == nil && n != int64(answered) {
					err = fmt.Errorf("%d were acknowledged, %s has %d", answered, table, n)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
		Drop: db.Drop,
	}, nil
}

// startPocket starts PocketBase for a cell.
func (p *runner) startPocket(ctx context.Context, c *result.Cell, dir string) (*server.Process, error) {
	cfg := pocketbase.Config{Dir: dir, Full: c.System == bench.FullSystem || c.System == bench.BatchSystem, Profile: p.Profile(c)}
	return server.StartProgram(ctx, cfg, p.Log, p.PeerProgram, pocketbase.Command)
}

// A pocketScene is a directory of PocketBase.
type pocketScene struct{ dir string }

func (s *pocketScene) drop() error { return os.RemoveAll(s.dir) }

// idleWait is the time before an idle process is measured.
const idleWait = time.Second

// starts measures the time until a system replies, and its idle memory.
func (p *runner) starts(ctx context.Context, round int) error {
	if err := p.fill(ctx); err != nil {
		return err
	}
	systems := []string{bench.APISystem, bench.PocketSystem}
	for _, c := range requests.Plan(bench.PeerStartPart, bench.SQLiteStore, []string{""}, []int{0}, []int{p.PeerFill}, systems, round) {
		if err := p.startCell(ctx, &c); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

func (p *runner) startCell(ctx context.Context, c *result.Cell) (err error) {
	work := p.world.Gets(c.Size)
	if c.System == bench.PocketSystem {
		work = getPocket(c.Size, "")
	}
	srv, err := p.startFull(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	if _, err := loadgen.Ask(ctx, srv.Addr, work.Requests[0], work.Status); err != nil {
		return err
	}
	c.Add("ready-ms", loadgen.Milliseconds(time.Since(srv.Begin)))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleWait):
	}
	idle, _, err := proc.MemoryMB(srv.PID)
	if err != nil {
		return err
	}
	c.Add("idle-MB", idle)
	return p.Note(c)
}

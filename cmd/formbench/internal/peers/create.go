package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// creates measures new responses: as fast as they are answered, and at a rate that
// both can carry.
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

// createCell measures and notes a cell, of an open loop when there is a rate.
func (p *runner) createCell(ctx context.Context, c *result.Cell, rate float64) error {
	s, err := p.contender(ctx, c)
	if err != nil {
		return err
	}
	return requests.Create(ctx, p.Bench, c, s, &loadgen.Load{Rate: rate}, func(m *requests.Measured) { m.Figures(c) })
}

// contender returns that of a cell.
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
	conns := slices.DeleteFunc(slices.Clone(p.PeerConns), func(n int) bool { return n == 1 }) // there is nothing to share
	systems := []string{bench.APISystem, bench.SingleSystem}
	for _, c := range requests.Plan(bench.PeerPostgresPart, bench.PostgresStore, []string{bench.CreateWhat}, conns, []int{0}, systems, round) {
		if err := p.createCell(ctx, &c, 0); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// single has the tables of the handler.
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

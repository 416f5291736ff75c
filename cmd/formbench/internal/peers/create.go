package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
)

// creates measures new responses: as fast as they are answered, and at a rate that
// both can carry.
func (p *runner) creates(ctx context.Context, round int) error {
	systems := []string{bench.CeilingSystem, bench.APISystem, PocketSystem, TokenSystem, FullSystem, BatchSystem}
	rate := 0.0
	for _, conns := range p.PeerConns {
		for _, system := range bench.Rotated(systems, round) {
			c := requests.Cell{What: requests.CreateWhat, Store: bench.SQLiteStore, System: system, Conns: conns, Round: round + 1}
			if err := p.createCell(ctx, &c, 0); err != nil {
				return fmt.Errorf("%s: %w", &c, err)
			}
			if system == PocketSystem && conns == slices.Max(p.PeerConns) {
				rate = c.PerSecond / 2
			}
		}
	}
	for _, system := range bench.Rotated([]string{bench.APISystem, PocketSystem}, round) {
		c := requests.Cell{What: dueWhat, Store: bench.SQLiteStore, System: system, Conns: slices.Max(p.PeerConns), Round: round + 1}
		if err := p.createCell(ctx, &c, rate); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// createCell measures and notes a cell, of an open loop when there is a rate.
func (p *runner) createCell(ctx context.Context, c *requests.Cell, rate float64) (err error) {
	s, err := p.contender(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.drop()) }()
	answered, err := p.createLoad(ctx, c, s, rate)
	if err != nil {
		return err
	}
	return s.holds(ctx, answered)
}

// createLoad returns how many requests were answered. The server has ended.
func (p *runner) createLoad(ctx context.Context, c *requests.Cell, s *contender, rate float64) (answered int, err error) {
	srv, err := s.start(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	work, err := s.creates(srv.Token)
	if err != nil {
		return 0, err
	}
	l := &loadgen.Load{Workload: work, Addr: srv.Addr, Conns: c.Conns, Rate: rate}
	if answered, err = c.Load(ctx, l, srv.PID, p.Warmup, p.Duration); err != nil {
		return 0, err
	}
	p.note(c)
	return answered, nil
}

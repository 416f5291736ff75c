// Package requests measures requests to the API one after the other on each connection:
// creates, reads, pages far behind, what quotas and idempotency keys cost, and what is left
// of the goodput when clients ask for more than the server can. How a system is loaded is
// the same for every part that sends requests.
package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// A runner measures requests.
type runner struct{ *bench.Bench }

// Run measures the parts that send requests to the API.
func Run(ctx context.Context, b *bench.Bench) error {
	r := &runner{b}
	ours := slices.Contains(b.Systems, bench.APISystem)
	checked := []string{bench.APISystem, bench.QuotaSystem, bench.KeyedSystem}
	for _, part := range []struct {
		name string
		when bool
		run  func() error
	}{
		{bench.CreatePart, true, func() error { return r.create(ctx, bench.CreatePart, b.Systems) }},
		{bench.ReadPart, true, func() error { return r.read(ctx) }},
		{bench.ChecksPart, ours, func() error { return r.create(ctx, bench.ChecksPart, checked) }},
		{bench.OverloadPart, true, func() error { return r.overload(ctx) }},
	} {
		if !part.when || !slices.Contains(b.Only, part.name) {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// each calls do for the cells of a part in all rounds, in order.
func (r *runner) each(part string, whats []string, conns, sizes []int, systems []string, do func(c *result.Cell) error) error {
	for round := range r.Rounds {
		for _, store := range r.Stores {
			for _, c := range Plan(part, store, whats, conns, sizes, systems, round) {
				if err := do(&c); err != nil {
					return fmt.Errorf("%s: %w", &c, err)
				}
			}
		}
	}
	return nil
}

// create measures new responses: as they are, or without a quota, with one, and with an
// idempotency key as well.
func (r *runner) create(ctx context.Context, part string, systems []string) error {
	return r.each(part, []string{bench.CreateWhat}, r.Conns, []int{0}, systems, func(c *result.Cell) error {
		s, err := Ours(ctx, r.Bench, c, c.Store, server.Config{})
		if err != nil {
			return err
		}
		return Create(ctx, r.Bench, c, s, &loadgen.Load{}, func(m *Measured) { m.Figures(c) })
	})
}

// read measures one response and the newest ones.
func (r *runner) read(ctx context.Context) (err error) {
	stores, err := r.fill(ctx)
	defer func() { err = errors.Join(err, stores.drop()) }()
	if err != nil {
		return err
	}
	systems := slices.DeleteFunc(slices.Clone(r.Systems), func(s string) bool { return s == bench.EachSystem })
	return r.each(bench.ReadPart, []string{bench.GetWhat, bench.ListWhat}, r.ReadConns, []int{r.Fill}, systems, func(c *result.Cell) error {
		f := stores[c.Store]
		w := f.world
		if c.System == bench.CeilingSystem {
			w = database.InventedWorld()
		}
		work := w.Gets(c.Size)
		if c.What == bench.ListWhat {
			work = w.List()
		}
		return Read(ctx, r.Bench, c, f.DSN, func(string) (loadgen.Workload, time.Duration, error) { return work, r.Duration, nil })
	})
}

// Read measures requests to a server of ours, for as long as prepare says.
func Read(ctx context.Context, b *bench.Bench, c *result.Cell, dsn string, prepare func(addr string) (loadgen.Workload, time.Duration, error)) (err error) {
	srv, err := StartOurs(ctx, b, c, server.Config{DSN: dsn})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	work, d, err := prepare(srv.Addr)
	if err != nil {
		return err
	}
	m, err := Load(ctx, &loadgen.Load{Workload: work, Addr: srv.Addr, Conns: c.Conns}, srv.PID, b.Warmup, d)
	if err != nil {
		return err
	}
	m.Figures(c)
	return b.Note(c)
}

// A filled database has a campaign that is only read.
type filled struct {
	*database.Database
	world database.World
}

// filledStores has one on each store.
type filledStores map[string]filled

func (s filledStores) drop() (err error) {
	for _, f := range s {
		err = errors.Join(err, f.Drop())
	}
	return err
}

// fill makes a database on each store. What it made has to be dropped also when it fails.
func (r *runner) fill(ctx context.Context) (filledStores, error) {
	stores := make(filledStores)
	for _, store := range r.Stores {
		start := time.Now()
		db, err := database.New(ctx, store, r.Dir)
		if err != nil {
			return stores, err
		}
		f := filled{Database: db}
		stores[store] = f
		if f.world, err = db.NewAccount(ctx); err == nil {
			f.world, err = db.WithResponses(ctx, f.world, r.Fill)
		}
		if err := errors.Join(err, db.Settle(ctx)); err != nil {
			return stores, fmt.Errorf("%s: %w", store, err)
		}
		stores[store] = f
		_, _ = fmt.Fprintf(r.Log, "stored %d responses in %s in %.1f s\n", r.Fill, store, time.Since(start).Seconds())
	}
	return stores, nil
}

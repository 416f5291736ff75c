// Package requests measures requests to the API one after the other on each connection: creates, reads, distant pages,
// the cost of quotas and idempotency keys, and the goodput under overload. Every part that sends requests uses its
// loads.
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
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
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

// create measures new responses: plain ones, or without a quota, with one, and with a quota and an idempotency key.
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
		start := func(ctx context.Context) (*server.Process, error) {
			return StartOurs(ctx, r.Bench, c, server.Config{DSN: f.DSN})
		}
		return Read(ctx, r.Bench, c, start, func(*server.Process) (loadgen.Workload, time.Duration, error) { return work, r.Duration, nil })
	})
}

// Read measures requests to a server, for the duration that prepare returns.
func Read(
	ctx context.Context, b *bench.Bench, c *result.Cell, start func(context.Context) (*server.Process, error),
	prepare func(*server.Process) (loadgen.Workload, time.Duration, error),
) (err error) {
	srv, err := start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	work, d, err := prepare(srv)
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

// filledStores has a filled database on each store.
type filledStores map[string]filled

func (s filledStores) drop() (err error) {
	for _, f := range s {
		err = errors.Join(err, f.Drop())
	}
	return err
}

// fill creates a database on each store. Drop the returned databases also on failure.
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

// A Contender is a system with a database of its own.
type Contender struct {
	Start   func(ctx context.Context) (*server.Process, error)
	Creates func(token string) (loadgen.Workload, error)
	Holds   func(ctx context.Context, sure, unsure int) error // fails unless everything acknowledged exists
	Drop    func() error
}

// StartOurs starts this program for a cell.
func StartOurs(ctx context.Context, b *bench.Bench, c *result.Cell, cfg server.Config) (*server.Process, error) {
	cfg.System = c.System
	if c.System == bench.OffsetSystem {
		cfg.System = bench.APISystem // with other requests
	}
	cfg.Responses, cfg.Profile = max(c.Size, bench.MinFill), b.Profile(c)
	return server.Start(ctx, b.Self, cfg, b.Log)
}

// Ours returns one of our systems with an empty database and a webhook, so that each response has a delivery, too. The
// ceiling has neither.
func Ours(ctx context.Context, b *bench.Bench, c *result.Cell, store string, cfg server.Config) (_ *Contender, err error) {
	s := &Contender{
		Start: func(ctx context.Context) (*server.Process, error) { return StartOurs(ctx, b, c, cfg) },
		Holds: func(context.Context, int, int) error { return nil },
		Drop:  func() error { return nil },
	}
	w := database.InventedWorld()
	s.Creates = func(string) (loadgen.Workload, error) {
		if c.System == bench.KeyedSystem {
			return w.KeyedCreates()
		}
		return w.Creates()
	}
	if c.System == bench.CeilingSystem {
		return s, nil
	}
	db, err := database.New(ctx, store, b.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Drop())
		}
	}()
	if w, err = db.NewAccount(ctx); err != nil {
		return nil, err
	}
	if w, err = db.WithWebhook(ctx, w); err != nil {
		return nil, err
	}
	cfg.DSN = db.DSN
	s.Holds = func(ctx context.Context, sure, unsure int) error { return db.Holds(ctx, w, sure, unsure) }
	s.Drop = db.Drop
	return s, nil
}

// Create loads a contender with new responses, as an open loop if there is a rate. It notes the figures that add adds
// and checks that every acknowledged response exists. The contender is closed afterwards.
func Create(ctx context.Context, b *bench.Bench, c *result.Cell, s *Contender, l *loadgen.Load, add func(*Measured)) (err error) {
	defer func() { err = errors.Join(err, s.Drop()) }()
	m, err := createLoad(ctx, b, c, s, l, add)
	if err != nil {
		return err
	}
	return s.Holds(ctx, m.Answered, m.Unsure)
}

func createLoad(ctx context.Context, b *bench.Bench, c *result.Cell, s *Contender, l *loadgen.Load, add func(*Measured)) (m *Measured, err error) {
	srv, err := s.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	if l.Workload, err = s.Creates(srv.Token); err != nil {
		return nil, err
	}
	l.Addr, l.Conns = srv.Addr, c.Conns
	if m, err = Load(ctx, l, srv.PID, b.Warmup, b.Duration); err != nil {
		return nil, err
	}
	add(m)
	return m, b.Note(c)
}

// Measured has the results and the cost of a load.
type Measured struct {
	loadgen.Sample
	Seconds             float64
	Server, Self, Other float64 // cores
	PeakMB              float64 // resident memory of the server
}

// Load measures a load of a server.
func Load(ctx context.Context, l *loadgen.Load, server int, warmup, d time.Duration) (*Measured, error) {
	l.Begin = time.Now().Add(warmup)
	l.End = l.Begin.Add(d)
	s, before, after, err := l.Watched(ctx, server)
	if err != nil {
		return nil, err
	}
	m := NewMeasured(s, before, after, d)
	m.PeakMB, err = proc.PeakMB(server)
	return m, err
}

// NewMeasured returns the cost of a sample. CPU times are read a little after the sample begins and ends, so each has
// its own clock.
func NewMeasured(s loadgen.Sample, before, after proc.Times, d time.Duration) *Measured {
	m := &Measured{Sample: s, Seconds: d.Seconds()}
	_, each, self, other := after.Since(&before)
	m.Self, m.Other = self, other
	for _, cores := range each {
		m.Server += cores
	}
	return m
}

// Figures adds the figures to a cell. CPU is the time of the server, and of Postgres if that stores the data.
func (m *Measured) Figures(c *result.Cell) {
	rate := float64(len(m.Latencies)) / m.Seconds
	micros := func(cores float64) float64 { return cores / max(rate, 1/m.Seconds) * 1e6 }
	cpu := m.Server
	if c.Store == bench.PostgresStore && c.System != bench.CeilingSystem {
		cpu += m.Other
	}
	c.Figures = append(c.Figures, []result.Figure{
		{Unit: "requests/s", Value: rate},
		{Unit: "p50-ms", Value: loadgen.Quantile(m.Latencies, 50, 100)},
		{Unit: "p99-ms", Value: loadgen.Quantile(m.Latencies, 99, 100)},
		{Unit: "p99.9-ms", Value: loadgen.Quantile(m.Latencies, 999, 1000)},
		{Unit: "max-ms", Value: loadgen.Quantile(m.Latencies, 1, 1)},
		{Unit: "CPU-µs", Value: micros(cpu)},
		{Unit: "server-µs", Value: micros(m.Server)},
		{Unit: "other-µs", Value: micros(m.Other)},
		{Unit: "generator-µs", Value: micros(m.Self)},
		{Unit: "other-cores", Value: m.Other},
		{Unit: "peak-MB", Value: m.PeakMB},
	}...)
}

// Plan returns the cells of a part on a store in the order of their measurement: compared cells are measured one after
// the other.
func Plan(part, store string, whats []string, conns, sizes []int, systems []string, round int) (list []result.Cell) {
	for _, what := range whats {
		for _, n := range conns {
			for _, size := range sizes {
				for _, system := range bench.Rotated(systems, round) {
					key := result.Key{Part: part, What: what, Store: store, System: system, Conns: n, Size: size}
					list = append(list, result.Cell{Key: key, Round: round + 1})
				}
			}
		}
	}
	return list
}

// The loads of the overload cells.
const (
	peakConns  = 64                   // connections with the best rate
	overFactor = 10                   // of the peak rate
	slowWrite  = 2 * time.Millisecond // time of every response in a slow database, one after the other
)

// overload measures the goodput when clients ask for more than the server can process.
func (r *runner) overload(ctx context.Context) error {
	keys := []result.Key{{What: bench.PeakWhat, Conns: peakConns}}
	for _, n := range r.OverConns {
		keys = append(keys, result.Key{What: bench.EagerWhat, Conns: n}, result.Key{What: bench.PoliteWhat, Conns: n})
	}
	keys = append(keys, result.Key{What: bench.OpenWhat, Conns: slices.Max(r.OverConns)})
	for round := range r.Rounds {
		for _, place := range []string{bench.ProcessorPlace, bench.DatabasePlace} {
			for _, system := range bench.Rotated([]string{bench.APISystem, bench.UnboundedSystem}, round) {
				peak := 0.0
				for _, key := range keys {
					key.Part, key.Store, key.System = bench.OverloadPart, place, system
					c := result.Cell{Key: key, Round: round + 1}
					if err := r.overloadCell(ctx, &c, peak); err != nil {
						return fmt.Errorf("%s: %w", &c, err)
					}
					if key.What == bench.PeakWhat {
						peak, _ = c.Get("responses/s")
					}
				}
			}
		}
	}
	return nil
}

// overloadCell measures and notes one cell, given the peak rate.
func (r *runner) overloadCell(ctx context.Context, c *result.Cell, peak float64) error {
	cfg := server.Config{Processors: 1}
	if c.Store == bench.DatabasePlace {
		cfg.SlowWrite = slowWrite
	}
	s, err := Ours(ctx, r.Bench, c, bench.SQLiteStore, cfg)
	if err != nil {
		return err
	}
	l := &loadgen.Load{TooMuch: true, Polite: c.What == bench.PoliteWhat}
	if c.What == bench.OpenWhat {
		l.Rate = overFactor * peak
	}
	return Create(ctx, r.Bench, c, s, l, func(m *Measured) { m.overloadFigures(c, peak) })
}

// overloadFigures adds the clients' results to a cell. The goodput is created responses; requests that came too late to
// be sent count as offered.
func (m *Measured) overloadFigures(c *result.Cell, peak float64) {
	made := float64(len(m.Latencies))
	sent := made + float64(m.Refused)
	if peak == 0 {
		peak = made / m.Seconds
	}
	c.Figures = append(c.Figures, []result.Figure{
		{Unit: "responses/s", Value: made / m.Seconds},
		{Unit: "of-peak", Value: made / m.Seconds / max(peak, 1/m.Seconds)},
		{Unit: "refused", Value: float64(m.Refused) / max(sent, 1)},
		{Unit: "p50-ms", Value: loadgen.Quantile(m.Latencies, 50, 100)},
		{Unit: "p99-ms", Value: loadgen.Quantile(m.Latencies, 99, 100)},
		{Unit: "offered/s", Value: (sent + float64(m.Unsent)) / m.Seconds},
		{Unit: "sent/s", Value: sent / m.Seconds},
		{Unit: "broken", Value: float64(m.Broken)},
		{Unit: "server-cores", Value: m.Server},
		{Unit: "peak-MB", Value: m.PeakMB},
	}...)
}

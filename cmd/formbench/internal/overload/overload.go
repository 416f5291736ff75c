// Package overload measures what is left of the goodput when clients ask for more than
// the server can.
package overload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
	"github.com/formsvc/toolkit/formsvc"
)

// What the clients of an overload cell do.
const (
	PeakWhat   = "peak"   // as many as are served best
	EagerWhat  = "eager"  // who is refused asks again at once
	PoliteWhat = "polite" // who is refused waits for Retry-After
	OpenWhat   = "open"   // requests come at ten times the peak rate, whatever the answers
)

// What bounds the capacity of the server.
const (
	ProcessorPlace = "one processor"
	DatabasePlace  = "slow database"
)

// The loads of the cells.
const (
	PeakConns  = 64                   // connections that are served best
	overFactor = 10                   // of the peak rate
	slowWrite  = 2 * time.Millisecond // that every response takes a slow database, one after the other
)

// A Cell is one figure of the table, measured once.
type Cell struct {
	What      string  `json:"what"`
	Place     string  `json:"place"`
	System    string  `json:"system"`
	Conns     int     `json:"conns"`
	Round     int     `json:"round"`
	Offered   float64 `json:"offeredPerSecond"` // by the clients, also what found no connection to be sent on
	Sent      float64 `json:"sentPerSecond"`
	Goodput   float64 `json:"goodputPerSecond"` // responses that were made
	OfPeak    float64 `json:"ofPeak"`           // of the same system in the same round
	Refused   float64 `json:"refusedShare"`     // of the answers
	Broken    int     `json:"brokenConnections"`
	P50       float64 `json:"p50Milliseconds"` // of the goodput
	P99       float64 `json:"p99Milliseconds"`
	PeakMB    float64 `json:"peakMegabytes"` // resident memory of the server
	ServerCPU float64 `json:"serverCores"`
}

// String names the cell in progress lines.
func (c *Cell) String() string {
	return fmt.Sprintf("round %d, %s, %s, %s, connections %d", c.Round, c.What, c.Place, c.System, c.Conns)
}

// A runner is the part of a run that asks for too much.
type runner struct {
	*bench.Bench
	cells []Cell
}

// Run measures what the API still does when it is asked for more than it
// can. What was measured until a cell fails is returned, too.
func Run(ctx context.Context, b *bench.Bench) ([]Cell, error) {
	o := &runner{Bench: b}
	err := o.all(ctx)
	return o.cells, err
}

func (b *runner) all(ctx context.Context) error {
	cells := []Cell{{What: PeakWhat, Conns: PeakConns}}
	for _, n := range b.OverConns {
		cells = append(cells, Cell{What: EagerWhat, Conns: n}, Cell{What: PoliteWhat, Conns: n})
	}
	cells = append(cells, Cell{What: OpenWhat, Conns: slices.Max(b.OverConns)})
	for round := range b.Rounds {
		for _, place := range []string{ProcessorPlace, DatabasePlace} {
			for _, system := range bench.Rotated([]string{bench.APISystem, bench.UnboundedSystem}, round) {
				var peak float64
				for _, c := range cells {
					c.Place, c.System, c.Round = place, system, round+1
					if err := b.cell(ctx, &c, peak); err != nil {
						return fmt.Errorf("%s: %w", &c, err)
					}
					if c.What == PeakWhat {
						peak = c.Goodput
					}
				}
			}
		}
	}
	return nil
}

// cell measures and notes one cell, given the peak rate.
func (b *runner) cell(ctx context.Context, c *Cell, peak float64) (err error) {
	db, err := database.New(ctx, bench.SQLiteStore, b.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Drop()) }()
	w, err := db.NewAccount(ctx)
	if err != nil {
		return err
	}
	if w, err = db.WithWebhook(ctx, w); err != nil {
		return err
	}
	work, err := w.Creates()
	if err != nil {
		return err
	}
	cfg := server.Config{System: c.System, DSN: db.DSN, Processors: 1}
	if c.Place == DatabasePlace {
		cfg.SlowWrite = slowWrite
	}
	srv, err := server.Start(ctx, b.Self, cfg, b.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	begin := time.Now().Add(b.Warmup)
	p := &pressure{Workload: work, addr: srv.Addr, conns: c.Conns, begin: begin, end: begin.Add(b.Duration), polite: c.What == PoliteWhat}
	if c.What == OpenWhat {
		p.rate = overFactor * peak
	}
	s, before, after, err := p.watched(ctx, srv.PID)
	if err != nil {
		return err
	}
	memory, err := proc.PeakMemory(srv.PID)
	if err != nil {
		return err
	}
	c.fill(&s, b.Duration, peak)
	c.PeakMB = float64(memory) / 1e6
	c.ServerCPU = (after.Server - before.Server).Seconds() / after.At.Sub(before.At).Seconds()
	b.cells = append(b.cells, *c)
	_, _ = fmt.Fprintf(b.Log, "%s: %.0f/s\n", c, c.Goodput)
	return checkMade(ctx, db, w, s.made)
}

// fill computes the figures from what the clients saw.
func (c *Cell) fill(s *pressed, d time.Duration, peak float64) {
	seconds := d.Seconds()
	c.Offered, c.Sent = float64(s.sent+s.unsent)/seconds, float64(s.sent)/seconds
	c.Goodput = float64(len(s.latencies)) / seconds
	c.OfPeak = 1
	if c.What != PeakWhat && peak > 0 {
		c.OfPeak = c.Goodput / peak
	}
	if answers := len(s.latencies) + s.refused; answers > 0 {
		c.Refused = float64(s.refused) / float64(answers)
	}
	c.Broken = s.broken
	c.P50, c.P99 = stats.Milliseconds(stats.Percentile(s.latencies, 50)), stats.Milliseconds(stats.Percentile(s.latencies, 99))
}

// checkMade checks that the database has the responses that were acknowledged and no others.
// Who broke a connection may have made one without knowing.
func checkMade(ctx context.Context, d *database.Database, w database.World, t tally) error {
	return d.With(ctx, func(_ database.Store, svc *formsvc.Service) error {
		c, err := svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: w.Campaign.AccountID, ID: w.Campaign.ID})
		if err != nil {
			return err
		}
		if c.ResponseCount < int64(t.sure) || c.ResponseCount > int64(t.sure+t.unsure) {
			return fmt.Errorf("%d responses were acknowledged and %d may have been made; the database has %d", t.sure, t.unsure, c.ResponseCount)
		}
		return nil
	})
}

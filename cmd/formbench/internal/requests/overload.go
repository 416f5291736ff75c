package requests

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// The loads of the overload cells.
const (
	peakConns  = 64                   // connections that are served best
	overFactor = 10                   // of the peak rate
	slowWrite  = 2 * time.Millisecond // that every response takes a slow database, one after the other
)

// overload measures what is left of the goodput when clients ask for more than the server can.
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

// overloadFigures adds what the clients saw to a cell: the goodput is responses that were made, and what came too late to
// be sent was offered.
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

package deliver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// cellRows are the cells of what delivers.
type cellRows struct {
	stats.Grouping[rowKey, Cell]
}

type rowKey struct{ what, store, system, how string }

func newRows(cells []Cell) cellRows {
	return cellRows{stats.Group(cells, func(c *Cell) rowKey {
		return rowKey{c.What, c.Store, c.System, c.How}
	})}
}

// over returns one figure over another, round by round, or nil.
func (r *cellRows) over(a, b rowKey, figure func(*Cell) float64) *stats.Spread {
	return r.Over(a, b, func(c *Cell) int { return c.Round }, figure)
}

func perSecond(c *Cell) float64   { return c.PerSecond }
func ofReference(c *Cell) float64 { return c.OfReference }
func p50(c *Cell) float64         { return c.P50 }
func p99(c *Cell) float64         { return c.P99 }
func cpuSeconds(c *Cell) float64  { return c.CPU }

// mebibytes is the memory of the sender.
func mebibytes(c *Cell) float64 { return c.PeakMB * 1e6 / (1 << 20) }

// Goals compares the figures with what they should be. There are none
// unless a part that delivers was to be measured.
//
// Each has a bound and an aim. The aims of what is fast are what a sketch without
// retries, attempts, fairness and recovery reached; the bounds leave an engine with
// them about three quarters of that. They are ratios to what is measured in the same
// round wherever there is something to compare with. Outpost and Convoy are not
// among it: they need RabbitMQ or Redis beside Postgres, and are too large for one
// command to set up. Measured once by hand, Outpost reached about half of what River
// did, and Convoy a tenth of Outpost.
func Goals(o *bench.Options, cells []Cell) []report.Goal {
	if !o.Delivers() {
		return nil
	}
	j := judge{rows: newRows(cells)}
	for _, j.store = range []string{bench.SQLiteStore, bench.PostgresStore} {
		for _, part := range []struct {
			name  string
			judge func()
		}{
			{bench.SteadyPart, j.steady}, {bench.DrainPart, j.drain}, {bench.LatencyPart, j.latency}, {bench.IsolationPart, j.isolation},
			{bench.BacklogPart, j.backlog}, {bench.IdlePart, j.idle},
		} {
			if slices.Contains(o.Only, part.name) {
				part.judge()
			}
		}
	}
	return j.goals
}

// A judge collects the goals, store by store.
type judge struct {
	store string
	rows  cellRows
	goals []report.Goal
}

// bounds are what must be reached and what is aimed at, by store; that of ""
// counts for both.
type bounds map[string][2]float64

// add judges a value, if there is a goal for the store.
func (j *judge) add(g report.Goal, by bounds, value *stats.Spread) {
	pair, ok := by[j.store]
	if !ok {
		if pair, ok = by[""]; !ok {
			return
		}
	}
	g.Store, g.Bound, g.Aim = j.store, pair[0], pair[1]
	sign := "≤"
	if g.AtLeast {
		sign = "≥"
	}
	g.Text = fmt.Sprintf("%s %s %g", g.Text, sign, g.Bound)
	if g.Aim != g.Bound {
		g.Text += fmt.Sprintf(", aim %g", g.Aim)
	}
	j.goals = append(j.goals, g.Met(value))
}

func (j *judge) key(what, how string) rowKey {
	return rowKey{what, j.store, bench.APISystem, how}
}

func (j *judge) steady() {
	j.ofReference(bench.SteadyPart, bounds{bench.SQLiteStore: {0.30, 0.45}, bench.PostgresStore: {0.17, 0.23}})
	j.overRiver(bench.SteadyPart, j.store, bounds{bench.SQLiteStore: {5, 8}, bench.PostgresStore: {1.5, 2.1}})
	j.add(report.Goal{Text: "steady: CPU s per 10k, all processes", Decimals: 2},
		bounds{bench.SQLiteStore: {1.4, 1.0}, bench.PostgresStore: {3.0, 2.3}}, j.rows.Spread(j.key(bench.SteadyPart, ""), cpuSeconds))
	j.memory(bench.SteadyPart)
}

// drain compares both stores with River on Postgres, which drains far faster than
// on SQLite.
func (j *judge) drain() {
	j.ofReference(bench.DrainPart, bounds{bench.SQLiteStore: {0.55, 0.75}, bench.PostgresStore: {0.50, 0.65}})
	j.overRiver(bench.DrainPart, bench.PostgresStore, bounds{"": {1.8, 2.5}})
	j.memory(bench.DrainPart)
}

func (j *judge) ofReference(what string, by bounds) {
	j.add(report.Goal{Text: what + ": deliveries/s over the reference's", AtLeast: true, Decimals: 2}, by,
		j.rows.Spread(j.key(what, ""), ofReference))
}

// overRiver compares with River on a store.
func (j *judge) overRiver(what, store string, by bounds) {
	j.add(report.Goal{Text: what + ": deliveries/s over River's on " + store, AtLeast: true, Decimals: 2}, by,
		j.rows.over(j.key(what, ""), rowKey{what, store, RiverSystem, ""}, perSecond))
}

// memory judges the process that accepts and delivers; Postgres has its own.
func (j *judge) memory(what string) {
	j.add(report.Goal{Text: what + ": memory of the process, MiB", Decimals: 1}, bounds{"": {40, 30}},
		j.rows.Spread(j.key(what, ""), mebibytes))
}

func (j *judge) latency() {
	how := WithinHow
	if j.store == bench.PostgresStore {
		how = acrossHow
	}
	key := j.key(bench.LatencyPart, how)
	j.add(report.Goal{Text: "latency, " + how + ": p50 ms", Decimals: 2},
		bounds{bench.SQLiteStore: {1.5, 1.0}, bench.PostgresStore: {3, 1.5}}, j.rows.Spread(key, p50))
	j.add(report.Goal{Text: "latency, " + how + ": p99 ms", Decimals: 2},
		bounds{bench.SQLiteStore: {5, 2.5}, bench.PostgresStore: {10, 5}}, j.rows.Spread(key, p99))
}

func (j *judge) isolation() {
	for _, pair := range [][2]string{{hangScene, TenScene}, {HostileScene, twentyScene}} {
		bad, good := pair[0], pair[1]
		j.add(report.Goal{Text: bad + ": rate kept", AtLeast: true, Decimals: 2}, bounds{"": {0.95, 0.95}},
			j.rows.over(j.key(bench.IsolationPart, bad+ClosedLoop), j.key(bench.IsolationPart, good+ClosedLoop), perSecond))
		j.add(report.Goal{Text: bad + OpenLoop + ": p99 over that of " + good, Decimals: 1}, bounds{"": {2, 2}},
			j.rows.over(j.key(bench.IsolationPart, bad+OpenLoop), j.key(bench.IsolationPart, good+OpenLoop), p99))
	}
	most := 0.0
	for key, cells := range j.rows.Cells {
		for _, c := range cells {
			if key.store == j.store && key.what == bench.IsolationPart && strings.HasPrefix(key.how, HostileScene) {
				most = max(most, c.PeakMB)
			}
		}
	}
	var peak *stats.Spread
	if most > 0 {
		s := stats.NewSpread([]float64{most})
		peak = &s
	}
	j.add(report.Goal{Text: HostileScene + ": peak memory MB", Decimals: 0}, bounds{"": {300, 300}}, peak)
}

// As much as a claim may cost beside a backlog, over its cost without one: each
// index may be a level deeper then.
const (
	sameTime   = 1.3
	sameBlocks = 1.5
)

func (j *judge) backlog() {
	for _, how := range []string{neverHow, EmptyHow} {
		key := j.key(bench.BacklogPart, how)
		ratio := func(a, b func(*Cell) float64) *stats.Spread {
			if cells := j.rows.Cells[key]; len(cells) > 0 && b(&cells[0]) > 0 {
				s := stats.NewSpread([]float64{a(&cells[0]) / b(&cells[0])})
				return &s
			}
			return nil
		}
		j.add(report.Goal{Text: "claims beside a backlog, " + how + ": time over that without", Decimals: 2},
			bounds{"": {sameTime, sameTime}},
			ratio(func(c *Cell) float64 { return c.Claim }, func(c *Cell) float64 { return c.ClaimAlone }))
		j.add(report.Goal{Text: "claims beside a backlog, " + how + ": blocks over those without", Decimals: 2},
			bounds{bench.PostgresStore: {sameBlocks, sameBlocks}},
			ratio(func(c *Cell) float64 { return c.Blocks }, func(c *Cell) float64 { return c.BlocksAlone }))
	}
}

func (j *judge) idle() {
	j.add(report.Goal{Text: "idle: % of a core", Decimals: 2}, bounds{"": {1, 1}},
		j.rows.Spread(j.key(bench.IdlePart, ""), func(c *Cell) float64 { return 100 * c.Cores }))
	j.add(report.Goal{Text: "idle: queries/s", Decimals: 1}, bounds{bench.PostgresStore: {1, 1}},
		j.rows.Spread(j.key(bench.IdlePart, ""), func(c *Cell) float64 { return c.Queries }))
}

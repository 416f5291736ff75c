package requests

import (
	"fmt"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// Goals compares the figures with what they should be.
func Goals(o *bench.Options, cells []Cell, list []Ratio) []report.Goal {
	all := []report.Goal{}
	for _, store := range []string{bench.SQLiteStore, bench.PostgresStore} {
		j := judge{store: store, cells: cells, rows: NewRows(cells), ratios: list}
		j.create()
		for _, conns := range o.ReadConns {
			j.halfOfCeiling("get one", Subject{GetWhat, store, conns, o.Fill})
			j.halfOfCeiling("list of 20", Subject{ListWhat, store, conns, o.Fill})
		}
		j.depth(o.Large)
		if slices.Contains(o.Only, bench.ChecksPart) {
			j.checks(o.Conns)
		}
		j.memory()
		all = append(all, j.goals...)
	}
	return all
}

// A judge collects the goals of one store.
type judge struct {
	store  string
	cells  []Cell
	rows   Rows
	ratios []Ratio
	goals  []report.Goal
}

func (j *judge) add(g report.Goal, value *stats.Spread) {
	g.Store = j.store
	j.goals = append(j.goals, g.Met(value))
}

// ratio returns one of the ratios, or nil.
func (j *judge) ratio(of string, s Subject) *stats.Spread {
	for i := range j.ratios {
		if j.ratios[i].Of == of && j.ratios[i].Subject == s {
			return &j.ratios[i].Spread
		}
	}
	return nil
}

func (j *judge) halfOfCeiling(name string, s Subject) {
	text := fmt.Sprintf("%s, %d connections: requests/s ≥ 0.5 of the ceiling", name, s.Conns)
	j.add(report.Goal{Text: text, Bound: 0.5, AtLeast: true, Decimals: 2}, j.ratio(ofCeiling, s))
}

func (j *judge) create() {
	const conns = 64
	s := Subject{CreateWhat, j.store, conns, 0}
	key := RowKey{s, bench.APISystem}
	j.halfOfCeiling("create", s)
	j.add(report.Goal{Text: "create, 64 connections: p99 < 20 ms", Bound: 19.99, Decimals: 2, Unit: " ms"},
		j.rows.Spread(key, func(c *Cell) float64 { return c.P99 }))
	j.add(report.Goal{Text: "create, 64 connections: server CPU ≤ 60 µs", Bound: 60, Unit: " µs"},
		j.rows.Spread(key, func(c *Cell) float64 { return c.ServerMicros }))
	j.add(report.Goal{Text: "create, 1 connection: requests/s ≥ 1.0 of each", Bound: 1, AtLeast: true, Decimals: 2},
		j.ratio(ofEach, Subject{CreateWhat, j.store, 1, 0}))
}

func (j *judge) depth(large int) {
	for _, what := range []string{FirstWhat, DeepWhat} {
		j.add(report.Goal{Text: what + " of 20: p50 ≤ 1.3 of the small campaign's", Bound: 1.3, Decimals: 2},
			j.ratio(ofDepth, Subject{what, j.store, 1, large}))
	}
}

// checks judges what the quota and idempotency keys cost at the highest load.
func (j *judge) checks(conns []int) {
	s := Subject{ChecksWhat, j.store, slices.Max(conns), 0}
	j.add(report.Goal{Text: fmt.Sprintf("create, %d connections: with a quota > 0.95 of without", s.Conns), Bound: 0.95, AtLeast: true, Decimals: 2},
		j.ratio(ofQuota, s))
	j.add(report.Goal{Text: fmt.Sprintf("create, %d connections: with a quota and a key > 0.95 of without", s.Conns), Bound: 0.95, AtLeast: true, Decimals: 2},
		j.ratio(ofKeyed, s))
}

// memory judges the most that any server of the API had.
func (j *judge) memory() {
	var most *stats.Spread
	for _, c := range j.cells {
		if c.Store == j.store && c.System != bench.CeilingSystem && (most == nil || c.PeakMB > most.Median) {
			s := stats.NewSpread([]float64{c.PeakMB})
			most = &s
		}
	}
	j.add(report.Goal{Text: "peak memory of every server < 100 MB", Bound: 99.9, Decimals: 1, Unit: " MB"}, most)
}

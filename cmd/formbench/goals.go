package main

import (
	"fmt"
	"math"
	"slices"
)

// A goal is a figure to reach. The median decides; on a machine that does other
// work at the same time it says little.
type goal struct {
	Text     string  `json:"goal"`
	Store    string  `json:"store"`
	Bound    float64 `json:"bound"`
	Aim      float64 `json:"aim,omitempty"` // better than the bound; 0 when there is none
	Measured bool    `json:"measured"`
	Reached  bool    `json:"reached"`
	Aimed    bool    `json:"aimReached,omitempty"`
	Value    *spread `json:"value"` // nil when it was not measured

	atLeast  bool // the value must not be below the bound; otherwise not above it
	decimals int  // to compare and show with
	unit     string
}

// met compares the goal with its value, if there is one.
func (g goal) met(value *spread) goal {
	if value == nil {
		return g
	}
	g.Measured, g.Value = true, value
	// As precise as it is shown, so that the verdict never contradicts the number.
	unit := math.Pow10(g.decimals)
	shown := math.Round(value.Median*unit) / unit
	within := func(bound float64) bool {
		if g.atLeast {
			return shown >= bound
		}
		return shown <= bound
	}
	g.Reached = within(g.Bound)
	g.Aimed = g.Aim != 0 && within(g.Aim)
	return g
}

func (g *goal) verdict() string {
	switch {
	case g.Aimed && g.Aim != g.Bound:
		return "aim reached"
	case g.Reached:
		return "reached"
	}
	return "MISSED"
}

// goals compares the figures with what they should be.
func goals(o *options, cells []cell, list []ratio) []goal {
	all := []goal{}
	for _, store := range []string{sqliteStore, postgresStore} {
		j := judge{store: store, cells: cells, rows: newRows(cells), ratios: list}
		j.create()
		for _, conns := range o.ReadConns {
			j.halfOfCeiling("get one", subject{getWhat, store, conns, o.Fill})
			j.halfOfCeiling("list of 20", subject{listWhat, store, conns, o.Fill})
		}
		j.depth(o.Large)
		if slices.Contains(o.Only, checksPart) {
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
	cells  []cell
	rows   rows
	ratios []ratio
	goals  []goal
}

func (j *judge) add(g goal, value *spread) {
	g.Store = j.store
	j.goals = append(j.goals, g.met(value))
}

// ratio returns one of the ratios, or nil.
func (j *judge) ratio(of string, s subject) *spread {
	for i := range j.ratios {
		if j.ratios[i].Of == of && j.ratios[i].subject == s {
			return &j.ratios[i].spread
		}
	}
	return nil
}

func (j *judge) halfOfCeiling(name string, s subject) {
	text := fmt.Sprintf("%s, %d connections: requests/s ≥ 0.5 of the ceiling", name, s.Conns)
	j.add(goal{Text: text, Bound: 0.5, atLeast: true, decimals: 2}, j.ratio(ofCeiling, s))
}

func (j *judge) create() {
	const conns = 64
	s := subject{createWhat, j.store, conns, 0}
	key := rowKey{s, groupSystem}
	j.halfOfCeiling("create", s)
	j.add(goal{Text: "create, 64 connections: p99 < 20 ms", Bound: 19.99, decimals: 2, unit: " ms"},
		j.rows.spread(key, func(c *cell) float64 { return c.P99 }))
	j.add(goal{Text: "create, 64 connections: server CPU ≤ 60 µs", Bound: 60, unit: " µs"},
		j.rows.spread(key, func(c *cell) float64 { return c.ServerMicros }))
	j.add(goal{Text: "create, 1 connection: requests/s ≥ 1.0 of each", Bound: 1, atLeast: true, decimals: 2},
		j.ratio(ofEach, subject{createWhat, j.store, 1, 0}))
}

func (j *judge) depth(large int) {
	for _, what := range []string{firstWhat, deepWhat} {
		j.add(goal{Text: what + " of 20: p50 ≤ 1.3 of the small campaign's", Bound: 1.3, decimals: 2},
			j.ratio(ofDepth, subject{what, j.store, 1, large}))
	}
}

// checks judges what the quota and idempotency keys cost at the highest load.
func (j *judge) checks(conns []int) {
	s := subject{checksWhat, j.store, slices.Max(conns), 0}
	j.add(goal{Text: fmt.Sprintf("create, %d connections: with a quota > 0.95 of without", s.Conns), Bound: 0.95, atLeast: true, decimals: 2},
		j.ratio(ofQuota, s))
	j.add(goal{Text: fmt.Sprintf("create, %d connections: with a quota and a key > 0.95 of without", s.Conns), Bound: 0.95, atLeast: true, decimals: 2},
		j.ratio(ofKeyed, s))
}

// memory judges the most that any server of the API had.
func (j *judge) memory() {
	var most *spread
	for _, c := range j.cells {
		if c.Store == j.store && c.System != ceilingSystem && (most == nil || c.PeakMB > most.Median) {
			s := newSpread([]float64{c.PeakMB})
			most = &s
		}
	}
	j.add(goal{Text: "peak memory of every server < 100 MB", Bound: 99.9, decimals: 1, unit: " MB"}, most)
}

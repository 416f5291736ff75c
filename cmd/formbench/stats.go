package main

import (
	"fmt"
	"slices"
	"time"
)

// percentile returns the smallest sample that p percent of all are not above
// (nearest rank), or 0 when there is none.
func percentile(sorted []time.Duration, p int) time.Duration { return quantile(sorted, p, 100) }

// quantile is the same for parts of a whole.
func quantile(sorted []time.Duration, part, whole int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*part + whole - 1) / whole
	return sorted[max(rank-1, 0)]
}

// A spread is what the rounds say of one figure.
type spread struct {
	Median  float64   `json:"median"`
	Lowest  float64   `json:"lowest"`
	Highest float64   `json:"highest"`
	Rounds  []float64 `json:"rounds"`
}

// newSpread returns the spread of at least one figure, by round.
func newSpread(rounds []float64) spread {
	sorted := slices.Sorted(slices.Values(rounds))
	n := len(sorted)
	return spread{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Lowest: sorted[0], Highest: sorted[n-1], Rounds: rounds,
	}
}

// text returns the median, and the range when there was more than one round.
func (s spread) text(decimals int) string {
	if len(s.Rounds) == 1 {
		return fmt.Sprintf("%.*f", decimals, s.Median)
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", decimals, s.Median, decimals, s.Lowest, decimals, s.Highest)
}

// A subject is what the cells of all rounds have in common.
type subject struct {
	What      string `json:"what"`
	Store     string `json:"store"`
	Conns     int    `json:"conns"`
	Responses int    `json:"responses"`
}

func (c *cell) subject() subject {
	return subject{What: c.What, Store: c.Store, Conns: c.Conns, Responses: c.Responses}
}

// A grouping is the cells of all rounds, by what they have in common. The order
// is that of the first round.
type grouping[K comparable, C any] struct {
	keys  []K
	cells map[K][]C
}

func grouped[K comparable, C any](cells []C, keyOf func(*C) K) grouping[K, C] {
	g := grouping[K, C]{cells: make(map[K][]C)}
	for i := range cells {
		key := keyOf(&cells[i])
		if g.cells[key] == nil {
			g.keys = append(g.keys, key)
		}
		g.cells[key] = append(g.cells[key], cells[i])
	}
	return g
}

// spread returns the spread of a figure of a row, or nil when it was not
// measured.
func (g *grouping[K, C]) spread(key K, figure func(*C) float64) *spread {
	cells := g.cells[key]
	if len(cells) == 0 {
		return nil
	}
	s := newSpread(mapped(cells, figure))
	return &s
}

// over returns one figure over another, round by round, or nil.
func (g *grouping[K, C]) over(a, b K, round func(*C) int, figure func(*C) float64) *spread {
	var list []float64
	for _, x := range g.cells[a] {
		for _, y := range g.cells[b] {
			if below := figure(&y); round(&x) == round(&y) && below > 0 {
				list = append(list, figure(&x)/below)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	s := newSpread(list)
	return &s
}

// rows are the cells of requests.
type rows struct{ grouping[rowKey, cell] }

type rowKey struct {
	subject
	system string
}

func newRows(cells []cell) rows {
	return rows{grouped(cells, func(c *cell) rowKey { return rowKey{c.subject(), c.System} })}
}

func mapped[T, R any](list []T, f func(*T) R) []R {
	out := make([]R, len(list))
	for i := range list {
		out[i] = f(&list[i])
	}
	return out
}

// A ratio compares two rows round by round.
type ratio struct {
	subject
	Of string `json:"of"`
	spread
}

// What ratios are of.
const (
	ofCeiling = "formsvc/ceiling requests/s"
	ofEach    = "formsvc/each requests/s"
	ofDepth   = "large/small p50"
	ofQuota   = "quota/formsvc requests/s"
	ofKeyed   = "quota and key/formsvc requests/s"
)

// ratios returns every ratio that the cells give.
func ratios(cells []cell) []ratio {
	r := newRows(cells)
	list := []ratio{}
	for _, key := range r.keys {
		if key.system != groupSystem {
			continue
		}
		mine := r.cells[key]
		for _, other := range []struct{ of, system string }{{ofCeiling, ceilingSystem}, {ofEach, eachSystem}} {
			theirs := r.cells[rowKey{key.subject, other.system}]
			list = appendRatio(list, key.subject, other.of, mine, theirs, func(c *cell) float64 { return c.PerSecond })
		}
		for _, other := range []struct{ of, system string }{{ofQuota, quotaSystem}, {ofKeyed, keyedSystem}} {
			theirs := r.cells[rowKey{key.subject, other.system}]
			list = appendRatio(list, key.subject, other.of, theirs, mine, func(c *cell) float64 { return c.PerSecond })
		}
		if (key.What == firstWhat || key.What == deepWhat) && key.Responses != smallCampaign {
			small := key
			small.Responses = smallCampaign
			list = appendRatio(list, key.subject, ofDepth, mine, r.cells[small], func(c *cell) float64 { return c.P50 })
		}
	}
	return list
}

// appendRatio compares the rounds that both have.
func appendRatio(list []ratio, s subject, of string, a, b []cell, figure func(*cell) float64) []ratio {
	var rounds []float64
	for i := range min(len(a), len(b)) {
		if below := figure(&b[i]); below > 0 {
			rounds = append(rounds, figure(&a[i])/below)
		}
	}
	if len(rounds) == 0 {
		return list
	}
	return append(list, ratio{subject: s, Of: of, spread: newSpread(rounds)})
}

package requests

import (
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
)

// Report writes a table for each store of each part.
func Report(w *report.Writer, cells []Cell) {
	type section struct{ part, store string }
	var order []section
	bySection := make(map[section][]Cell)
	for _, c := range cells {
		s := section{partOf(c.What), c.Store}
		if bySection[s] == nil {
			order = append(order, s)
		}
		bySection[s] = append(bySection[s], c)
	}
	slices.SortStableFunc(order, func(a, b section) int {
		return slices.Index(bench.AllParts(), a.part) - slices.Index(bench.AllParts(), b.part)
	})
	for _, s := range order {
		w.Printf("\n%s, %s\n", s.part, s.store)
		table := [][]string{{
			"", "responses", "connections", "system", "requests/s", "p50 ms", "p99 ms", "max ms", "errors",
			"server µs", "other µs", "generator µs", "other cores", "peak MB",
		}}
		r := NewRows(bySection[s])
		for _, key := range r.Keys {
			table = append(table, r.Line(key))
		}
		w.Table(1, table)
	}
}

func partOf(what string) string {
	switch what {
	case CreateWhat:
		return bench.CreatePart
	case GetWhat, ListWhat:
		return bench.ReadPart
	case ChecksWhat:
		return bench.ChecksPart
	}
	return bench.DepthPart
}

// Line returns the row as text. Of the worst latency and the memory the highest
// says all.
func (r *Rows) Line(key RowKey) []string {
	text := func(decimals int, figure func(*Cell) float64) string {
		return r.Spread(key, figure).Text(decimals)
	}
	highest := func(decimals int, figure func(*Cell) float64) string {
		return strconv.FormatFloat(r.Spread(key, figure).Highest, 'f', decimals, 64)
	}
	errors := 0
	for _, c := range r.Cells[key] {
		errors += c.Errors
	}
	return []string{
		key.What, strconv.Itoa(key.Responses), strconv.Itoa(key.Conns), key.System,
		text(0, func(c *Cell) float64 { return c.PerSecond }),
		text(3, func(c *Cell) float64 { return c.P50 }),
		text(2, func(c *Cell) float64 { return c.P99 }),
		highest(1, func(c *Cell) float64 { return c.Max }),
		strconv.Itoa(errors),
		text(0, func(c *Cell) float64 { return c.ServerMicros }),
		text(0, func(c *Cell) float64 { return c.OtherMicros }),
		text(0, func(c *Cell) float64 { return c.GeneratorMicros }),
		text(2, func(c *Cell) float64 { return c.OtherCores }),
		highest(0, func(c *Cell) float64 { return c.PeakMB }),
	}
}

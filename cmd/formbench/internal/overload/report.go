package overload

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// cellRows are the cells of overload.
type cellRows struct {
	stats.Grouping[rowKey, Cell]
}

type rowKey struct {
	what, place, system string
	conns               int
}

func newRows(cells []Cell) cellRows {
	return cellRows{stats.Group(cells, func(c *Cell) rowKey {
		return rowKey{c.What, c.Place, c.System, c.Conns}
	})}
}

// Report writes a table.
func Report(w *report.Writer, cells []Cell) {
	if len(cells) == 0 {
		return
	}
	w.Printf("\noverload: creates; the server has one processor, or a database that takes %v for each; %s: no bound on requests in progress;\n"+
		"refused: share of the answers; latencies and goodput: of what was served\n", slowWrite, bench.UnboundedSystem)
	table := [][]string{{
		"", "", "", "connections", "offered/s", "sent/s", "goodput/s", "of peak", "refused", "p50 ms", "p99 ms", "broken", "server cores", "peak MB",
	}}
	rows := newRows(cells)
	for _, key := range rows.Keys {
		table = append(table, rows.line(key))
	}
	w.Table(3, table)
}

// line returns the row as text.
func (r *cellRows) line(key rowKey) []string {
	text := func(decimals int, figure func(*Cell) float64) string {
		return r.Spread(key, figure).Text(decimals)
	}
	highest := func(figure func(*Cell) float64) string {
		return strconv.FormatFloat(r.Spread(key, figure).Highest, 'f', 0, 64)
	}
	return []string{
		key.what, key.place, key.system, strconv.Itoa(key.conns),
		text(0, func(c *Cell) float64 { return c.Offered }),
		text(0, func(c *Cell) float64 { return c.Sent }),
		text(0, func(c *Cell) float64 { return c.Goodput }),
		text(2, ofPeak),
		text(2, func(c *Cell) float64 { return c.Refused }),
		text(1, func(c *Cell) float64 { return c.P50 }),
		text(0, func(c *Cell) float64 { return c.P99 }),
		highest(func(c *Cell) float64 { return float64(c.Broken) }),
		text(2, func(c *Cell) float64 { return c.ServerCPU }),
		highest(func(c *Cell) float64 { return c.PeakMB }),
	}
}

func ofPeak(c *Cell) float64 { return c.OfPeak }

// leastOfPeak is what must be left of the goodput under any load.
const leastOfPeak = 0.8

// Goals compares the figures with what they should be. There are none unless
// overload was to be measured.
func Goals(o *bench.Options, cells []Cell) (list []report.Goal) {
	if !slices.Contains(o.Only, bench.OverloadPart) {
		return nil
	}
	r := newRows(cells)
	for _, key := range r.Keys {
		if key.system != bench.APISystem || key.what == PeakWhat {
			continue
		}
		g := report.Goal{
			Text: fmt.Sprintf("overload, %s, %d connections: goodput ≥ %g of the peak", key.what, key.conns, leastOfPeak), Store: key.place,
			Bound: leastOfPeak, AtLeast: true, Decimals: 2,
		}
		list = append(list, g.Met(r.Spread(key, ofPeak)))
	}
	return list
}

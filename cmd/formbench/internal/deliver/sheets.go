package deliver

import (
	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// Sheets returns one for each part that delivers.
func Sheets(cells []Cell) (list []chart.Sheet) {
	r := newRows(cells)
	for _, part := range bench.DeliverParts() {
		s := chart.Sheet{Name: part, Title: heading(part)}
		if part == bench.SteadyPart || part == bench.DrainPart {
			s.Note = "reference: signs and posts the same payloads from memory; CPU: of all processes, Postgres and the receiver too"
			if part == bench.SteadyPart {
				s.Note += "; p99: from commit to arrival"
			}
			s.Rows = referenceRows(&r, part)
		}
		chart.AddRows(&s, &r.Grouping, func(key rowKey) (chart.Row, bool) {
			row := chart.Row{Group: bench.StoreTitle(key.store), Label: key.system, System: key.system}
			if key.how != "" {
				row.Label = key.how
			}
			return row, key.what == part
		}, measuresOf(part)...)
		if len(s.Rows) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// referenceRows are what the reference did around the cells of a part.
func referenceRows(r *cellRows, part string) (list []chart.Row) {
	for _, key := range r.Keys {
		if key.what == part && key.system == bench.APISystem {
			value := r.Spread(key, func(c *Cell) float64 { return c.Reference })
			list = append(list, chart.Row{
				Group: bench.StoreTitle(key.store), Label: bench.ReferenceSystem, System: bench.ReferenceSystem, Values: []*stats.Spread{value},
			})
		}
	}
	return list
}

func heading(part string) string {
	switch part {
	case bench.SteadyPart:
		return "Accepting events one by one and delivering them"
	case bench.DrainPart:
		return "Delivering what was queued before"
	case bench.LatencyPart:
		return "From commit to arrival, at 50 events a second"
	case bench.IsolationPart:
		return "Healthy endpoints among others"
	case bench.BacklogPart:
		return "Claiming beside a backlog of another endpoint"
	case bench.IdlePart:
		return "At rest"
	}
	return part
}

// measuresOf are the columns of the text's table, of which some are drawn.
func measuresOf(part string) (list []chart.Measure[Cell]) {
	drawn := map[string]chart.Direction{"deliveries/s": chart.MoreIsBetter, "p99 ms": chart.LessIsBetter, "CPU s/10k": chart.LessIsBetter}
	switch part {
	case bench.LatencyPart:
		drawn["p50 ms"] = chart.LessIsBetter
	case bench.SteadyPart, bench.DrainPart:
		drawn["peak MB"] = chart.LessIsBetter
	}
	for _, c := range columnsOf(part) {
		switch c.title {
		case "reference/s": // which is a row here
			continue
		case "of it":
			c.title = "of the reference"
		}
		list = append(list, chart.NewMeasure(c.title, c.decimals, drawn[c.title], c.figure))
	}
	return list
}

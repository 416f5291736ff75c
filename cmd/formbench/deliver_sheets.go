package main

import (
	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// deliverSheets returns one for each part that delivers.
func deliverSheets(cells []deliverCell) (list []sheet) {
	r := newDeliverRows(cells)
	for _, part := range bench.DeliverParts() {
		s := sheet{name: part, title: deliverHeading(part)}
		if part == bench.SteadyPart || part == bench.DrainPart {
			s.note = "reference: signs and posts the same payloads from memory; CPU: of all processes, Postgres and the receiver too"
			if part == bench.SteadyPart {
				s.note += "; p99: from commit to arrival"
			}
			s.rows = referenceRows(&r, part)
		}
		addRows(&s, &r.Grouping, func(key deliverKey) (sheetRow, bool) {
			row := sheetRow{group: bench.StoreTitle(key.store), label: key.system, system: key.system}
			if key.how != "" {
				row.label = key.how
			}
			return row, key.what == part
		}, deliverMeasures(part)...)
		if len(s.rows) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// referenceRows are what the reference did around the cells of a part.
func referenceRows(r *deliverRows, part string) (list []sheetRow) {
	for _, key := range r.Keys {
		if key.what == part && key.system == bench.APISystem {
			value := r.Spread(key, func(c *deliverCell) float64 { return c.Reference })
			list = append(list, sheetRow{
				group: bench.StoreTitle(key.store), label: bench.ReferenceSystem, system: bench.ReferenceSystem, values: []*stats.Spread{value},
			})
		}
	}
	return list
}

func deliverHeading(part string) string {
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

// deliverMeasures are the columns of the text's table, of which some are drawn.
func deliverMeasures(part string) (list []measure[deliverCell]) {
	drawn := map[string]direction{"deliveries/s": moreIsBetter, "p99 ms": lessIsBetter, "CPU s/10k": lessIsBetter}
	switch part {
	case bench.LatencyPart:
		drawn["p50 ms"] = lessIsBetter
	case bench.SteadyPart, bench.DrainPart:
		drawn["peak MB"] = lessIsBetter
	}
	for _, c := range deliverColumns(part) {
		switch c.title {
		case "reference/s": // which is a row here
			continue
		case "of it":
			c.title = "of the reference"
		}
		list = append(list, newMeasure(c.title, c.decimals, drawn[c.title], c.figure))
	}
	return list
}

package requests

import (
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
)

// Sheets returns one for each store of each part.
func Sheets(cells []Cell) (list []chart.Sheet) {
	for _, part := range bench.RequestParts() {
		for _, store := range []string{bench.SQLiteStore, bench.PostgresStore} {
			some := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return partOf(c.What) != part || c.Store != store })
			s := chart.Sheet{Name: part + "-" + store, Title: title(part) + ", " + bench.StoreTitle(store)}
			s.Note = note(part, store)
			r := NewRows(some)
			sizes := slices.ContainsFunc(some, func(c Cell) bool { return c.Responses != some[0].Responses })
			chart.AddRows(&s, &r.Grouping, func(key RowKey) (chart.Row, bool) { return key.Row(part, sizes), true }, Measures()...)
			list = append(list, s)
		}
	}
	return list
}

// Measures are the columns of a chart of requests.
func Measures() []chart.Measure[Cell] {
	return []chart.Measure[Cell]{
		chart.NewMeasure("requests/s", 0, chart.MoreIsBetter, func(c *Cell) float64 { return c.PerSecond }),
		chart.NewMeasure("p50 ms", 2, chart.NotDrawn, func(c *Cell) float64 { return c.P50 }),
		chart.NewMeasure("p99 ms", 2, chart.LessIsBetter, func(c *Cell) float64 { return c.P99 }),
		chart.NewMeasure("CPU µs/request", 0, chart.LessIsBetter, cpuMicros),
		chart.NewMeasure("peak MB", 0, chart.NotDrawn, func(c *Cell) float64 { return c.PeakMB }),
	}
}

// cpuMicros is the CPU time of what answers: of the server, and of Postgres where
// that stores.
func cpuMicros(c *Cell) float64 {
	if c.Store == bench.PostgresStore && c.System != bench.CeilingSystem {
		return c.ServerMicros + c.OtherMicros
	}
	return c.ServerMicros
}

// Row places a row; the number of responses is told where it differs.
func (key RowKey) Row(part string, sizes bool) chart.Row {
	r := chart.Row{Group: chart.Counted(key.Conns, "connection"), Label: key.System, System: key.System}
	if key.What != part {
		r.Group = key.What + ", " + r.Group
	}
	if sizes {
		r.Label += ", " + chart.Counted(key.Responses, "response")
	}
	return r
}

func title(part string) string {
	switch part {
	case bench.CreatePart:
		return "Creating responses"
	case bench.ReadPart:
		return "Reading responses"
	case bench.DepthPart:
		return "Pages of small and large campaigns"
	case bench.ChecksPart:
		return "Creating responses with a quota and idempotency keys"
	}
	return part
}

// note tells who is who.
func note(part, store string) string {
	note := "ceiling: decodes and encodes the same JSON, stores nothing"
	switch part {
	case bench.CreatePart:
		note += "; each: one transaction per request"
	case bench.DepthPart, bench.ChecksPart:
		note = ""
	}
	cpu := "CPU: of the server's process"
	if store == bench.PostgresStore {
		cpu += " and of Postgres"
	}
	return strings.TrimPrefix(note+"; "+cpu, "; ")
}

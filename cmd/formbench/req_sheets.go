package main

import (
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// requestSheets returns one for each store of each part.
func requestSheets(cells []cell) (list []sheet) {
	for _, part := range bench.RequestParts() {
		for _, store := range []string{bench.SQLiteStore, bench.PostgresStore} {
			some := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return partOf(c.What) != part || c.Store != store })
			s := sheet{name: part + "-" + store, title: requestTitle(part) + ", " + bench.StoreTitle(store)}
			s.note = requestNote(part, store)
			r := newRows(some)
			sizes := slices.ContainsFunc(some, func(c cell) bool { return c.Responses != some[0].Responses })
			addRows(&s, &r.Grouping, func(key rowKey) (sheetRow, bool) { return key.row(part, sizes), true }, requestMeasures()...)
			list = append(list, s)
		}
	}
	return list
}

func requestMeasures() []measure[cell] {
	return []measure[cell]{
		newMeasure("requests/s", 0, moreIsBetter, func(c *cell) float64 { return c.PerSecond }),
		newMeasure("p50 ms", 2, notDrawn, func(c *cell) float64 { return c.P50 }),
		newMeasure("p99 ms", 2, lessIsBetter, func(c *cell) float64 { return c.P99 }),
		newMeasure("CPU µs/request", 0, lessIsBetter, cpuMicros),
		newMeasure("peak MB", 0, notDrawn, func(c *cell) float64 { return c.PeakMB }),
	}
}

// cpuMicros is the CPU time of what answers: of the server, and of Postgres where
// that stores.
func cpuMicros(c *cell) float64 {
	if c.Store == bench.PostgresStore && c.System != bench.CeilingSystem {
		return c.ServerMicros + c.OtherMicros
	}
	return c.ServerMicros
}

// row places a row; the number of responses is told where it differs.
func (key rowKey) row(part string, sizes bool) sheetRow {
	r := sheetRow{group: counted(key.Conns, "connection"), label: key.system, system: key.system}
	if key.What != part {
		r.group = key.What + ", " + r.group
	}
	if sizes {
		r.label += ", " + counted(key.Responses, "response")
	}
	return r
}

func requestTitle(part string) string {
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

// requestNote tells who is who.
func requestNote(part, store string) string {
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

package main

import (
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// overloadSheets returns one of what is left of the goodput for each place.
func overloadSheets(cells []overloadCell) (list []sheet) {
	r := newOverloadRows(cells)
	for _, place := range []string{processorPlace, databasePlace} {
		s := sheet{
			name:  bench.OverloadPart + "-" + strings.ReplaceAll(place, " ", "-"),
			title: "Creating responses under overload, SQLite, " + place,
			note:  bench.UnboundedSystem + ": no bound on requests in progress; p99: of what was served",
		}
		addRows(&s, &r.Grouping, func(key overloadKey) (sheetRow, bool) {
			group := key.what + ", " + counted(key.conns, "connection")
			return sheetRow{group: group, label: key.system, system: key.system}, key.place == place
		},
			newMeasure("responses/s", 0, moreIsBetter, func(c *overloadCell) float64 { return c.Goodput }),
			newMeasure("of peak", 2, notDrawn, ofPeak),
			newMeasure("refused", 2, notDrawn, func(c *overloadCell) float64 { return c.Refused }),
			newMeasure("p99 ms", 0, lessIsBetter, func(c *overloadCell) float64 { return c.P99 }),
		)
		list = append(list, s)
	}
	return list
}

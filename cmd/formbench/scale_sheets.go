package main

import (
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// scaleSheets returns one for each store.
func scaleSheets(cells []cell) (list []sheet) {
	for _, store := range []string{bench.SQLiteStore, bench.PostgresStore} {
		some := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Store != store })
		s := sheet{name: bench.ScalePart + "-" + store, title: "Few responses and many, " + bench.StoreTitle(store)}
		r := newRows(some)
		slices.SortStableFunc(r.Keys, func(a, b rowKey) int { return strings.Compare(a.What, b.What) })
		addRows(&s, &r.Grouping, func(key rowKey) (sheetRow, bool) {
			return sheetRow{
				group: key.What + ", " + counted(key.Conns, "connection"), label: counted(key.Responses, "response"), system: bench.APISystem,
			}, true
		},
			newMeasure("p50 ms", 3, notDrawn, func(c *cell) float64 { return c.P50 }),
			newMeasure("p99 ms", 2, notDrawn, func(c *cell) float64 { return c.P99 }),
		)
		list = append(list, s)
	}
	return list
}

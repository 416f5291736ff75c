package scale

import (
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
)

// Sheets returns one for each store.
func Sheets(cells []requests.Cell) (list []chart.Sheet) {
	for _, store := range []string{bench.SQLiteStore, bench.PostgresStore} {
		some := slices.DeleteFunc(slices.Clone(cells), func(c requests.Cell) bool { return c.Store != store })
		s := chart.Sheet{Name: bench.ScalePart + "-" + store, Title: "Few responses and many, " + bench.StoreTitle(store)}
		r := requests.NewRows(some)
		slices.SortStableFunc(r.Keys, func(a, b requests.RowKey) int { return strings.Compare(a.What, b.What) })
		chart.AddRows(&s, &r.Grouping, func(key requests.RowKey) (chart.Row, bool) {
			return chart.Row{
				Group: key.What + ", " + chart.Counted(key.Conns, "connection"), Label: chart.Counted(key.Responses, "response"), System: bench.APISystem,
			}, true
		},
			chart.NewMeasure("p50 ms", 3, chart.NotDrawn, func(c *requests.Cell) float64 { return c.P50 }),
			chart.NewMeasure("p99 ms", 2, chart.NotDrawn, func(c *requests.Cell) float64 { return c.P99 }),
		)
		list = append(list, s)
	}
	return list
}

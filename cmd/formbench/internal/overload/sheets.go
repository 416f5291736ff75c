package overload

import (
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
)

// Sheets returns one of what is left of the goodput for each place.
func Sheets(cells []Cell) (list []chart.Sheet) {
	r := newRows(cells)
	for _, place := range []string{ProcessorPlace, DatabasePlace} {
		s := chart.Sheet{
			Name:  bench.OverloadPart + "-" + strings.ReplaceAll(place, " ", "-"),
			Title: "Creating responses under overload, SQLite, " + place,
			Note:  bench.UnboundedSystem + ": no bound on requests in progress; p99: of what was served",
		}
		chart.AddRows(&s, &r.Grouping, func(key rowKey) (chart.Row, bool) {
			group := key.what + ", " + chart.Counted(key.conns, "connection")
			return chart.Row{Group: group, Label: key.system, System: key.system}, key.place == place
		},
			chart.NewMeasure("responses/s", 0, chart.MoreIsBetter, func(c *Cell) float64 { return c.Goodput }),
			chart.NewMeasure("of peak", 2, chart.NotDrawn, ofPeak),
			chart.NewMeasure("refused", 2, chart.NotDrawn, func(c *Cell) float64 { return c.Refused }),
			chart.NewMeasure("p99 ms", 0, chart.LessIsBetter, func(c *Cell) float64 { return c.P99 }),
		)
		list = append(list, s)
	}
	return list
}

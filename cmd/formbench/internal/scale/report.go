package scale

import (
	"fmt"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// bothRows are the cells of both sizes.
type bothRows struct{ requests.Rows }

// small returns the key of the same on the small installation.
func (r *bothRows) small(key requests.RowKey, o *bench.Options) requests.RowKey {
	key.Responses = o.ScaleSmall
	return key
}

// growth returns a figure of the large installation over that of the small one.
func (r *bothRows) growth(o *bench.Options, key requests.RowKey, figure func(*requests.Cell) float64) *stats.Spread {
	return r.Over(key, r.small(key, o), func(c *requests.Cell) int { return c.Round }, figure)
}

// Report writes a table for each store.
func Report(w *report.Writer, o *bench.Options, cells []requests.Cell) {
	store := ""
	var table [][]string
	flush := func() {
		w.Table(1, table)
		table = nil
	}
	r := bothRows{requests.NewRows(cells)}
	for _, key := range r.Keys {
		if key.Responses == o.ScaleSmall {
			continue
		}
		if key.Store != store {
			flush()
			store = key.Store
			w.Printf("\nscale, %s: %d and %d responses\n", store, o.ScaleSmall, key.Responses)
			table = [][]string{{"", "connections", "p50 ms", "p50 ms", "ratio", "p99 ms", "p99 ms", "ratio", "errors"}}
		}
		table = append(table, r.line(o, key))
	}
	flush()
}

// line returns what was measured at both sizes as text.
func (r *bothRows) line(o *bench.Options, key requests.RowKey) []string {
	line := []string{key.What, strconv.Itoa(key.Conns)}
	for _, figure := range []func(*requests.Cell) float64{medianOf, worstOf} {
		for _, k := range []requests.RowKey{r.small(key, o), key} {
			line = append(line, textOf(r.Spread(k, figure), 3))
		}
		line = append(line, textOf(r.growth(o, key, figure), 2))
	}
	failed := 0
	for _, c := range append(r.Cells[key], r.Cells[r.small(key, o)]...) {
		failed += c.Errors
	}
	return append(line, strconv.Itoa(failed))
}

func medianOf(c *requests.Cell) float64 { return c.P50 }
func worstOf(c *requests.Cell) float64  { return c.P99 }

// textOf returns a spread as text, "-" when it was not measured.
func textOf(s *stats.Spread, decimals int) string {
	if s == nil {
		return "-"
	}
	return s.Text(decimals)
}

// ReportSizes writes what the large installations take.
func ReportSizes(w *report.Writer, list []Size) {
	store := ""
	var table [][]string
	flush := func() {
		w.Table(2, table)
		table = nil
	}
	for _, s := range list {
		if s.Store != store {
			flush()
			store = s.Store
			w.Printf("\nsizes, %s: %d responses\n", s.Store, s.Responses)
			table = [][]string{{"table", "index", "rows", "MB", "bytes per row"}}
		}
		table = append(table, []string{
			s.Table, s.Index, strconv.FormatInt(s.Rows, 10), strconv.FormatInt(s.Bytes/1e6, 10), strconv.FormatFloat(s.PerRow, 'f', 0, 64),
		})
	}
	flush()
}

// mostGrowth is what the median may become of what it is with few responses.
const mostGrowth = 1.3

// Goals compares the figures with what they should be. There are none unless
// scale was to be measured.
func Goals(o *bench.Options, cells []requests.Cell) (list []report.Goal) {
	r := bothRows{requests.NewRows(cells)}
	for _, key := range r.Keys {
		if key.Responses == o.ScaleSmall {
			continue
		}
		g := report.Goal{
			Text:  fmt.Sprintf("scale, %s, %d connections: p50 at %d responses ≤ %g × that at %d", key.What, key.Conns, key.Responses, mostGrowth, o.ScaleSmall),
			Store: key.Store, Bound: mostGrowth, Decimals: 2,
		}
		list = append(list, g.Met(r.growth(o, key, medianOf)))
	}
	return list
}

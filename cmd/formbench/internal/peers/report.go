package peers

import (
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// startRows are the starts, by system.
type startRows struct {
	stats.Grouping[string, StartCell]
}

func newStartRows(cells []StartCell) startRows {
	return startRows{stats.Group(cells, func(c *StartCell) string { return c.System })}
}

// Report writes the tables of what was compared with peers.
func Report(w *report.Writer, r *Result) {
	reportRequests(w, r.Requests)
	if len(r.Files) > 0 {
		w.Printf("\nuploads beside PocketBase: one file of %s, on a disk; server, generator, other: seconds of CPU time per GB\n",
			files.SizeText(r.Files[0].Bytes))
		w.Table(2, fileTable(files.NewRows(r.Files)))
	}
	if len(r.Starts) > 0 {
		w.Printf("\nstart beside PocketBase, with %d responses: from the start of the process to the first answer; memory %v later\n",
			r.Starts[0].Responses, idleWait)
		rows := newStartRows(r.Starts)
		table := [][]string{{"", "ready ms", "idle MB"}}
		for _, system := range rows.Keys {
			table = append(table, []string{
				system, rows.Spread(system, startReady).Text(1),
				rows.Spread(system, func(c *StartCell) float64 { return c.IdleMB }).Text(1),
			})
		}
		w.Table(1, table)
	}
	if len(r.Ratios) > 0 {
		w.Printf("\nbeside peers:")
		requests.ReportRatios(w, r.Ratios)
	}
}

// reportRequests writes a table for each store.
func reportRequests(w *report.Writer, cells []requests.Cell) {
	for _, store := range []string{bench.SQLiteStore, bench.PostgresStore} {
		mine := slices.DeleteFunc(slices.Clone(cells), func(c requests.Cell) bool { return c.Store != store })
		if len(mine) == 0 {
			continue
		}
		w.Printf("\nbeside peers, %s\n", store)
		rows := requests.NewRows(mine)
		table := [][]string{{
			"", "responses", "connections", "system", "requests/s", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "errors",
			"server µs", "other µs", "generator µs", "other cores", "peak MB",
		}}
		const p999 = 7 // its column
		for _, key := range rows.Keys {
			table = append(table, slices.Insert(rows.Line(key), p999,
				rows.Spread(key, func(c *requests.Cell) float64 { return c.P999 }).Text(1)))
		}
		w.Table(1, table)
	}
}

func fileTable(rows files.Rows) [][]string {
	table := [][]string{{"", "", "MB/s", "of PocketBase", "server", "generator", "other", "peak MB", "grown MB"}}
	theirs := files.RowKey{What: files.FormWhat, Place: files.DiskPlace, System: PocketSystem}
	for _, key := range rows.Keys {
		text := func(decimals int, figure func(*files.Cell) float64) string {
			return rows.Spread(key, figure).Text(decimals)
		}
		of := ""
		if over := rows.Over(key, theirs, func(c *files.Cell) int { return c.Round }, files.MegabytesPerSecond); over != nil && key != theirs {
			of = over.Text(2)
		}
		table = append(table, []string{
			key.What, key.System, text(0, files.MegabytesPerSecond), of,
			text(2, func(c *files.Cell) float64 { return c.ServerCPU }),
			text(2, func(c *files.Cell) float64 { return c.GeneratorCPU }),
			text(2, func(c *files.Cell) float64 { return c.OtherCPU }),
			strconv.FormatFloat(rows.Spread(key, func(c *files.Cell) float64 { return c.PeakMB }).Highest, 'f', 0, 64),
			text(1, func(c *files.Cell) float64 { return c.GrownUpMB }),
		})
	}
	return table
}

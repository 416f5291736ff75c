package peers

import (
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
)

// Sheets returns one for each part that compares with peers.
func Sheets(r *Result) []chart.Sheet {
	return []chart.Sheet{
		requestSheet(r.Requests, bench.PeerCreatePart, "Creating responses beside PocketBase", bench.SQLiteStore, requests.CreateWhat, dueWhat),
		requestSheet(r.Requests, bench.PeerReadPart, "Reading responses beside PocketBase", bench.SQLiteStore, requests.GetWhat, requests.ListWhat, pageWhat),
		fileSheet(r.Files),
		startSheet(r.Starts),
		requestSheet(r.Requests, bench.PeerPostgresPart, "Creating responses beside one statement each", bench.PostgresStore, requests.CreateWhat),
	}
}

func requestSheet(cells []requests.Cell, name, title, store string, whats ...string) chart.Sheet {
	some := slices.DeleteFunc(slices.Clone(cells), func(c requests.Cell) bool { return c.Store != store || !slices.Contains(whats, c.What) })
	s := chart.Sheet{Name: name, Title: title + ", " + bench.StoreTitle(store)}
	r := requests.NewRows(some)
	chart.AddRows(&s, &r.Grouping, func(key requests.RowKey) (chart.Row, bool) { return key.Row(requests.CreateWhat, false), true }, requests.Measures()...)
	return s
}

func fileSheet(cells []files.Cell) chart.Sheet {
	s := chart.Sheet{Name: bench.PeerFilesPart, Title: "Uploading a large file beside PocketBase", Note: "CPU: of the server"}
	r := files.NewRows(cells)
	chart.AddRows(&s, &r.Grouping, func(key files.RowKey) (chart.Row, bool) {
		return chart.Row{Group: key.What, Label: key.System, System: key.System}, true
	},
		chart.NewMeasure("MB/s", 0, chart.MoreIsBetter, files.MegabytesPerSecond),
		chart.NewMeasure("CPU s/GB", 2, chart.LessIsBetter, func(c *files.Cell) float64 { return c.ServerCPU }),
		chart.NewMeasure("peak MB", 0, chart.LessIsBetter, files.ServerPeak),
	)
	return s
}

func startSheet(cells []StartCell) chart.Sheet {
	s := chart.Sheet{Name: bench.PeerStartPart, Title: "Starting beside PocketBase"}
	r := newStartRows(cells)
	chart.AddRows(&s, &r.Grouping, func(system string) (chart.Row, bool) { return chart.Row{Label: system, System: system}, true },
		chart.NewMeasure("ms until ready", 1, chart.LessIsBetter, startReady),
		chart.NewMeasure("MB at rest", 1, chart.LessIsBetter, func(c *StartCell) float64 { return c.IdleMB }),
	)
	return s
}

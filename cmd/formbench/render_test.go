package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/deliver"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/overload"
	"github.com/formsvc/toolkit/cmd/formbench/internal/peers"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/scale"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// sampleResult has a cell of everything.
func sampleResult() *result {
	r := &result{Started: time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC), Machine: proc.Machine{CPUs: 2, Model: "X"}, Notes: []string{"noisy"}}
	for round := 1; round <= 2; round++ {
		for _, system := range []string{bench.CeilingSystem, bench.APISystem} {
			figures := requests.Figures{PerSecond: 1_000 * float64(round), P99: 2, ServerMicros: 30, OtherMicros: 12}
			for _, what := range []string{requests.CreateWhat, requests.GetWhat} {
				r.Cells = append(r.Cells, requests.Cell{What: what, Store: bench.PostgresStore, System: system, Conns: 64, Round: round, Figures: figures})
			}
		}
		for _, what := range []string{bench.SteadyPart, bench.BacklogPart} {
			for _, system := range []string{bench.APISystem, deliver.RiverSystem} {
				c := deliver.Cell{What: what, Store: bench.SQLiteStore, System: system, Round: round}
				c.PerSecond, c.Reference, c.Claim = 500, 50_000, 7
				r.Deliveries = append(r.Deliveries, c)
			}
		}
		for system, peak := range map[string]float64{files.MinioSystem: 0, bench.APISystem: 20} {
			c := files.Cell{What: files.UploadWhat, Place: files.S3Place, System: system, Round: round}
			c.PerSecond, c.PeakMB = 9, peak
			r.Files = append(r.Files, c)
		}
		r.Overloads = append(r.Overloads, overload.Cell{What: overload.EagerWhat, Place: overload.DatabasePlace, System: bench.APISystem, Conns: 640, Round: round, Goodput: 8})
	}
	r.Peers.Requests = []requests.Cell{{What: requests.GetWhat, Store: bench.SQLiteStore, System: peers.PocketSystem, Conns: 8, Figures: requests.Figures{PerSecond: 77}}}
	r.Peers.Starts = []peers.StartCell{{System: peers.PocketSystem, Ready: 14.5}}
	r.Peers.Ratios = []requests.Ratio{{Of: "formsvc/PocketBase requests/s", Subject: requests.Subject{What: requests.GetWhat, Store: bench.SQLiteStore}, Spread: stats.NewSpread([]float64{3, 5})}}
	r.Scale = []requests.Cell{{What: scale.RareWhat, Store: bench.SQLiteStore, Conns: 1, Responses: 2_000_000, Figures: requests.Figures{P50: 0.25}}}
	r.Ratios = requests.Ratios(r.Cells)
	two := stats.NewSpread([]float64{2})
	r.Goals = []report.Goal{report.Goal{Text: "a goal", Store: bench.SQLiteStore, Bound: 1}.Met(&two), {Text: "not measured"}}
	return r
}

func TestRender(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "run.json")
	text, err := json.Marshal(sampleResult())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	charts := filepath.Join(dir, "charts")
	var out, log bytes.Buffer
	if status := run(t.Context(), []string{"-render", file, "-chart", charts}, streams{nil, &out, &log}); status != 0 {
		t.Fatalf("exit status %d: %s", status, &log)
	}
	for _, want := range []string{
		"NOTE: run.json: noisy",
		"### Creating responses, Postgres\n\n![Creating responses, Postgres](" + filepath.ToSlash(charts) + "/create-postgres.svg)",
		"23 November 2026: 2 CPUs (X)",
		"|  |  | requests/s | p99 ms | CPU µs/request |\n|---|---|--:|--:|--:|\n" +
			"| 64 connections | ceiling | 1,500 (1,000–2,000) | 2.00 (2.00–2.00) | 30 (30–30) |\n" +
			"|  | formsvc | 1,500 (1,000–2,000) | 2.00 (2.00–2.00) | 42 (42–42) |\n",
		"| get one, 64 connections | ceiling |",
		"| SQLite | reference | 50,000 (50,000–50,000) |",
		" | minio-go | 9 (9–9) |  |\n",
		" | formsvc | 9 (9–9) | 20 (20–20) |\n",
		"| eager, 640 connections | formsvc | 8 (8–8) |",
		"| get one, 8 connections | PocketBase | 77 |",
		"| PocketBase | 14.5 |",
		"formsvc/PocketBase requests/s",
		"| status, rare, 1 connection | 2,000,000 responses | 0.250 |",
		"| a goal | SQLite | **missed** | 2.00 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(out.String(), "not measured") || strings.Contains(out.String(), "backlog.svg") || t.Failed() {
		t.Errorf("got\n%s", &out)
	}
	want := []string{"create-postgres.svg", "files.svg", "overload-slow-database.svg", "peers-read.svg", "peers-start.svg", "read-postgres.svg", "steady.svg"}
	if got := names(t, charts); !slices.Equal(got, want) {
		t.Errorf("got the charts %q", got)
	}
	for _, args := range [][]string{{"-render", file + "," + file}, {"-render", filepath.Join(dir, "none")}, {"-render", filepath.Join(charts, want[0])}} {
		if status := run(t.Context(), append(args, "-chart", charts), streams{nil, io.Discard, io.Discard}); status != 1 {
			t.Errorf("%q: exit status %d", args, status)
		}
	}
}

// names returns those of the files in a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// TestChartOfRun makes sure that a run draws what it measured.
func TestChartOfRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "charts")
	benchmark(t, "-stores", "sqlite", "-rounds", "1", "-conns", "2", "-systems", bench.APISystem, "-only", bench.CreatePart, "-chart", dir)
	if got := names(t, dir); !slices.Equal(got, []string{"create-sqlite.svg"}) {
		t.Fatalf("got the charts %q", got)
	}
	chart, err := os.ReadFile(filepath.Join(dir, "create-sqlite.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(chart), `class="group">2 connections<`) {
		t.Errorf("got\n%s", chart)
	}
}

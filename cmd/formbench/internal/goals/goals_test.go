package goals

import (
	"slices"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// TestGoals judges three rounds of figures with known verdicts.
func TestGoals(t *testing.T) {
	t.Parallel()
	var cells result.Cells
	add := func(key result.Key, unit string, rounds ...float64) {
		for i, value := range rounds {
			cells = append(cells, result.Cell{Key: key, Round: i + 1, Figures: []result.Figure{{Unit: unit, Value: value}}})
		}
	}
	key := func(part, what, store, system string, conns, size int) result.Key {
		return result.Key{Part: part, What: what, Store: store, System: system, Conns: conns, Size: size}
	}
	// Everything has a third of the rate in the first round: only ratios within rounds are the same in each.
	for _, store := range []string{bench.SQLiteStore, bench.PostgresStore} {
		add(key(bench.DrainPart, "", store, bench.APISystem, 0, 0), "deliveries/s", 220, 660, 440)
	}
	add(key(bench.DrainPart, "", bench.PostgresStore, bench.RiverSystem, 0, 0), "deliveries/s", 100, 300, 200)
	add(key(bench.SteadyPart, "", bench.PostgresStore, bench.APISystem, 0, 0), "peak-MB", 31, 33, 32)
	add(key(bench.SteadyPart, "", bench.SQLiteStore, bench.APISystem, 0, 0), "CPU-s/10k", 5)
	for system, rate := range map[string]float64{bench.APISystem: 20, bench.PocketSystem: 5.1, bench.FullSystem: 3} {
		add(key(bench.PeerCreatePart, bench.CreateWhat, bench.SQLiteStore, system, 64, 0), "requests/s", rate, 3*rate)
	}
	add(key(bench.PeerReadPart, bench.PageWhat, bench.SQLiteStore, bench.CreatedSystem, 1, 200), "p50-ms", 60)
	add(key(bench.PeerReadPart, bench.PageWhat, bench.SQLiteStore, bench.OffsetSystem, 1, 200), "p50-ms", 1)
	add(key(bench.PeerReadPart, bench.PageWhat, bench.SQLiteStore, bench.APISystem, 1, 200), "p50-ms", 0.5)
	add(key(bench.FilesPart, bench.UploadWhat, bench.S3Place, bench.APISystem, 0, 0), "of-minio-go", 0.69)
	add(key(bench.OverloadPart, bench.EagerWhat, bench.DatabasePlace, bench.APISystem, 640, 0), "of-peak", 0.9)
	add(key(bench.ScalePart, "e-mail", bench.SQLiteStore, bench.APISystem, 1, 10), "p50-ms", 2)
	add(key(bench.ScalePart, "e-mail", bench.SQLiteStore, bench.APISystem, 1, 1000), "p50-ms", 2.6)
	o := &bench.Options{
		Only: append(bench.AllParts(), bench.ScalePart), Conns: []int{64}, ReadConns: []int{8}, PeerConns: []int{64}, PeerFill: 200,
	}
	o.ScaleSmall = 10
	list := All(o, cells)
	table, missing := Table(list)
	for _, want := range [][]string{
		{"drain: deliveries/s over River's on postgres ≥ 1.8, aim 2.5", bench.SQLiteStore, "reached", "2.20 (2.20–2.20)"},
		{"drain: deliveries/s over River's on postgres ≥ 1.8, aim 2.5", bench.PostgresStore, "reached", "2.20 (2.20–2.20)"},
		{"steady: peak-MB of the process ≤ 41.94, aim 31.46", bench.PostgresStore, "reached", "32.0 (31.0–33.0)"},
		{"steady: CPU-s/10k, all processes ≤ 1.4, aim 1", bench.SQLiteStore, "**missed**", "5.00"},
		{"create, formsvc, 64 connections: requests/s over PocketBase ≥ 4", bench.SQLiteStore, "**missed**", "3.92 (3.92–3.92)"},
		{"create, formsvc, 64 connections: requests/s over PocketBase FULL ≥ 6", bench.SQLiteStore, "reached", "6.67 (6.67–6.67)"},
		{"far page, formsvc: p50-ms of PocketBase, by created over it ≥ 100", bench.SQLiteStore, "reached", "120"},
		{"far page, formsvc, offset: p50-ms of PocketBase, by created over it ≥ 100", bench.SQLiteStore, "**missed**", "60.0"},
		{"upload: MB/s over minio-go ≥ 0.7", bench.S3Place, "**missed**", "0.690"},
		{"overload, eager, 640 connections: responses/s over the peak's ≥ 0.8", bench.DatabasePlace, "reached", "0.900"},
		{"scale, e-mail, 1 connections: p50-ms at 1000 responses over that at 10 ≤ 1.3", bench.SQLiteStore, "reached", "1.30"},
	} {
		if !slices.ContainsFunc(table, func(row []string) bool { return slices.Equal(row, want) }) {
			t.Errorf("%q is not in %q", want, table)
		}
	}
	if len(table) != 1+11 || missing != len(list)-11 || missing < 50 {
		t.Errorf("%d goals were measured and %d not", len(table)-1, missing)
	}
	o.Only = []string{bench.IdlePart}
	if list := All(o, cells); len(list) != 3 {
		t.Errorf("got %+v", list)
	}
}

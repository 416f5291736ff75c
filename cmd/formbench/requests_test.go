package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

func TestEveryCell(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, "-stores", "sqlite", "-rounds", "2", "-conns", "1,64", "-read-conns", "4",
		"-only", "create,read,depth")
	for _, conns := range []int{1, 64} {
		for _, system := range bench.AllSystems() {
			if !hasRow(table, requests.CreateWhat, 0, conns, system) {
				t.Errorf("no row for create, %d connections, %s", conns, system)
			}
		}
	}
	for _, system := range []string{bench.CeilingSystem, bench.APISystem} {
		for _, what := range []string{requests.GetWhat, requests.ListWhat} {
			if !hasRow(table, what, 300, 4, system) {
				t.Errorf("no row for %s, %s", what, system)
			}
		}
	}
	for _, what := range []string{requests.FirstWhat, requests.DeepWhat} {
		for _, n := range []int{bench.SmallCampaign, 1500} {
			if !hasRow(table, what, n, 1, bench.APISystem) {
				t.Errorf("no row for %s of %d", what, n)
			}
		}
	}
	if want := 2 * (2*3 + 2*2 + 2*2); len(r.Cells) != want {
		t.Errorf("got %d cells, want %d", len(r.Cells), want)
	}
	if want := 2*2 + 2 + 2; len(r.Ratios) != want {
		t.Errorf("got %d ratios, want %d", len(r.Ratios), want)
	}
	for _, x := range r.Ratios {
		if len(x.Rounds) == 0 || x.Lowest > x.Median || x.Median > x.Highest {
			t.Errorf("implausible ratio %+v", x)
		}
	}
	for _, g := range r.Goals {
		if g.Measured != (g.Store == bench.SQLiteStore) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
	if strings.Count(table, "reached")+strings.Count(table, "MISSED") < 9 {
		t.Errorf("goals are missing in\n%s", table)
	}
}

func TestPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips where there is none
	_, r := benchmark(t, "-stores", "postgres", "-rounds", "1", "-conns", "8", "-read-conns", "8",
		"-only", "create,read,depth")
	if want := 3 + 2*2 + 2*2; len(r.Cells) != want {
		t.Errorf("got %d cells, want %d", len(r.Cells), want)
	}
}

func TestWithoutPostgres(t *testing.T) {
	t.Setenv(bench.PostgresEnv, "")
	t.Setenv("CI", "")
	table, _ := benchmark(t, "-stores", "sqlite,postgres", "-rounds", "1", "-only", "create", "-conns", "1")
	if !strings.Contains(table, "SKIPPED: Postgres") {
		t.Errorf("the skip is not loud:\n%s", table)
	}
	t.Setenv("CI", "true")
	var log bytes.Buffer
	if status := run(t.Context(), nil, streams{nil, io.Discard, &log}); status != 1 || !strings.Contains(log.String(), bench.PostgresEnv) {
		t.Errorf("in CI: exit status %d, %s", status, &log)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-conns", "0"}, {"-conns", "x"}, {"-stores", "oracle"}, {"-only", "nothing"}, {"-rounds", "0"},
		{"-duration", "0s"}, {"-n", "10"}, {"-callers", "0"}, {"-latency", "0s"}, {"-idle", "0s"}, {"-backlog", "0"},
		{"-file-count", "0"}, {"-file-size", "0"}, {"-file-size", "1073741825"}, {"-file-large", "0"}, {"-file-burst", "0"},
		{"-fill", "1"}, {"-large", "10"}, {"-unknown"}, {"argument"}, {"-systems", ""},
	} {
		if status := run(t.Context(), args, streams{nil, io.Discard, io.Discard}); status != 2 {
			t.Errorf("%q: exit status %d, want 2", args, status)
		}
	}
	o, err := bench.ParseOptions([]string{"-systems", "each,ceiling", "-conns", "2, 4"}, io.Discard)
	if err != nil || !slices.Equal(o.Systems, []string{bench.CeilingSystem, bench.EachSystem}) || !slices.Equal(o.Conns, []int{2, 4}) {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, "-stores", "sqlite", "-rounds", "1", "-conns", "4", "-only", "checks")
	for _, system := range []string{bench.APISystem, bench.QuotaSystem, bench.KeyedSystem} {
		if !hasRow(table, requests.ChecksWhat, 0, 4, system) {
			t.Errorf("no row for %s", system)
		}
	}
	if len(r.Ratios) != 2 {
		t.Errorf("got %d ratios, want 2", len(r.Ratios))
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/benchtest"
	"github.com/formsvc/toolkit/cmd/formbench/internal/peers"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// peersSmall makes every part beside peers short.
var peersSmall = []string{"-rounds", "1", "-peer-fill", "400", "-peer-conns", "1,32", "-file-size", "100000", "-file-large", "3000000"}

func TestPeersEveryCell(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, append([]string{"-stores", "sqlite", "-only", "peers", "-peers", benchtest.Peers(t)}, peersSmall...)...)
	for _, conns := range []int{1, 32} {
		for _, system := range []string{bench.CeilingSystem, bench.APISystem, peers.PocketSystem, peers.TokenSystem, peers.FullSystem, peers.BatchSystem} {
			if !hasRow(table, requests.CreateWhat, 0, conns, system) {
				t.Errorf("no row for create, %d connections, %s", conns, system)
			}
		}
	}
	reads := 0
	for _, plan := range peers.ReadPlans() {
		for _, system := range plan.Systems {
			reads++
			if !hasRow(table, plan.What, 400, plan.Conns, system) {
				t.Errorf("no row for %s, %d connections, %s", plan.What, plan.Conns, system)
			}
		}
	}
	if want := 2*6 + 2 + reads; len(r.Peers.Requests) != want || len(r.Peers.Files) != 3 || len(r.Peers.Starts) != 2 {
		t.Errorf("got %d cells of requests, want %d, %d of files and %d starts",
			len(r.Peers.Requests), want, len(r.Peers.Files), len(r.Peers.Starts))
	}
	for _, c := range r.Peers.Requests {
		if c.Errors != 0 || c.Requests == 0 || c.P99 < c.P50 || c.P999 < c.P99 || c.Max < c.P999 || c.PeakMB <= 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	for _, c := range r.Peers.Files {
		if c.Bytes != 3_000_000 || c.PerSecond <= 0 || c.PeakMB <= 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	for _, c := range r.Peers.Starts {
		if c.Ready <= 0 || c.IdleMB <= 0 {
			t.Errorf("implausible start %+v", c)
		}
	}
	for _, g := range r.Goals {
		if g.Measured == (g.Store == bench.PostgresStore) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
	if len(r.Peers.Ratios) == 0 || len(r.Goals) < 15 {
		t.Errorf("got %d ratios and %d goals", len(r.Peers.Ratios), len(r.Goals))
	}
}

func TestPeersPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips where there is none
	table, r := benchmark(t, append([]string{"-stores", "postgres", "-only", "peers"}, peersSmall...)...)
	for _, system := range []string{bench.APISystem, bench.SingleSystem, peers.InsertSystem} {
		if !hasRow(table, requests.CreateWhat, 0, 32, system) {
			t.Errorf("no row for %s", system)
		}
	}
	if len(r.Peers.Requests) != 3 || len(r.Goals) != 1 || !r.Goals[0].Measured {
		t.Errorf("got %d cells and the goals %+v", len(r.Peers.Requests), r.Goals)
	}
	if !strings.Contains(table, "NOT MEASURED: PocketBase") {
		t.Errorf("nobody says that PocketBase is missing in\n%s", table)
	}
}

func TestPeersAbsent(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, "-stores", "sqlite", "-rounds", "1", "-only", "peers")
	if !strings.Contains(table, "NOT MEASURED: PocketBase") || len(r.Peers.Requests) != 0 {
		t.Errorf("got %+v:\n%s", r.Peers, table)
	}
	for _, g := range r.Goals {
		if g.Measured {
			t.Errorf("goal %q was measured", g.Text)
		}
	}
}

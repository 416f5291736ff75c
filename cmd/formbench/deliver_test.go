package main

import (
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/deliver"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// deliverSmall makes every part that delivers short.
var deliverSmall = []string{"-n", "400", "-callers", "8", "-latency", "400ms", "-idle", "300ms", "-backlog", "3000"}

func TestDeliverEveryCell(t *testing.T) {
	t.Parallel()
	args := append([]string{"-stores", "sqlite", "-rounds", "1", "-only", bench.DeliverPart}, deliverSmall...)
	table, r := benchmark(t, args...)
	for _, row := range [][]any{
		{bench.SQLiteStore, bench.APISystem},
		{bench.SQLiteStore, bench.APISystem, deliver.WithinHow},
		{bench.SQLiteStore, bench.APISystem, deliver.TenScene + deliver.ClosedLoop},
		{bench.SQLiteStore, bench.APISystem, deliver.HostileScene + deliver.OpenLoop},
		{bench.SQLiteStore, bench.APISystem, deliver.EmptyHow},
	} {
		if !hasRow(table, row...) {
			t.Errorf("no row for %v in\n%s", row, table)
		}
	}
	if want := 1 + 1 + 1 + 8 + 2 + 1; len(r.Deliveries) != want {
		t.Errorf("got %d cells, want %d", len(r.Deliveries), want)
	}
	for _, c := range r.Deliveries {
		checkDelivered(t, &c)
	}
	for _, g := range r.Goals {
		if g.Measured != (g.Store == bench.SQLiteStore && !strings.Contains(g.Text, "River")) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
	if !hasRow(table, bench.SQLiteStore, deliver.RiverSystem, "not measured") || !strings.Contains(table, "NOT MEASURED: River") {
		t.Errorf("nobody learns that River is missing in\n%s", table)
	}
	if strings.Count(table, "reached")+strings.Count(table, "MISSED") < 12 {
		t.Errorf("goals are missing in\n%s", table)
	}
}

// checkDelivered makes sure that a cell has the figures of its part.
func checkDelivered(t *testing.T, c *deliver.Cell) {
	t.Helper()
	ok := c.Reference > 0
	switch c.What {
	case bench.SteadyPart, bench.DrainPart:
		ok = ok && c.Events == 400 && c.PerSecond > 0 && c.OfReference > 0 && c.PeakMB > 0 && c.AcceptPerSecond > 0
	case bench.LatencyPart:
		ok = ok && c.Events == 20 && c.P99 >= c.P50 && c.CallP50 > 0 && c.CallP50 >= c.P50 && c.CallP99 >= c.P99
	case bench.IsolationPart:
		ok = ok && c.PerSecond > 0 && c.P99 >= c.P50 && c.PeakMB > 0
	case bench.BacklogPart:
		ok = ok && c.Events == 3000 && c.Claim > 0 && c.ClaimAlone > 0 && (c.Store == bench.SQLiteStore || c.Blocks > 1)
	}
	if !ok {
		t.Errorf("implausible cell %+v", c)
	}
}

func TestDeliverPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips where there is none
	args := append([]string{"-stores", "postgres", "-rounds", "1", "-only", "steady,latency,backlog"}, deliverSmall...)
	table, r := benchmark(t, args...)
	if want := 1 + 2 + 2; len(r.Deliveries) != want || !strings.Contains(table, "not measured") {
		t.Errorf("got %d cells, want %d:\n%s", len(r.Deliveries), want, table)
	}
	for _, c := range r.Deliveries {
		checkDelivered(t, &c)
	}
}

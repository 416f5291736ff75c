package main

import (
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/overload"
)

// Every cell of overload is measured, on the bounded and the unbounded server, and what
// was acknowledged is in the database.
func TestOverloadCells(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, "-stores", "sqlite", "-rounds", "1", "-only", "overload", "-over-conns", "80", "-duration", "500ms")
	for _, place := range []string{overload.ProcessorPlace, overload.DatabasePlace} {
		for _, system := range []string{bench.APISystem, bench.UnboundedSystem} {
			for what, conns := range map[string]int{overload.PeakWhat: overload.PeakConns, overload.EagerWhat: 80, overload.PoliteWhat: 80, overload.OpenWhat: 80} {
				if !hasRow(table, what, place, system, conns) {
					t.Errorf("no row for %s, %s, %s", what, place, system)
				}
			}
		}
	}
	if len(r.Overloads) != 2*2*4 || len(r.Goals) != 2*3 {
		t.Errorf("%d cells and %d goals", len(r.Overloads), len(r.Goals))
	}
	made := 0.0
	for _, c := range r.Overloads {
		made += c.Goodput
		if c.Sent < c.Goodput || c.Offered < c.Sent || c.P99 < c.P50 || c.PeakMB <= 0 || c.Broken != 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	if made == 0 {
		t.Error("no response was made")
	}
}

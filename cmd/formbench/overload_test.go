package main

import (
	"math"
	"testing"
	"time"
)

// Every cell of overload is measured, on the bounded and the unbounded server, and what
// was acknowledged is in the database.
func TestOverloadCells(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, "-stores", "sqlite", "-rounds", "1", "-only", "overload", "-over-conns", "80", "-duration", "500ms")
	for _, place := range []string{processorPlace, databasePlace} {
		for _, system := range []string{groupSystem, unboundedSystem} {
			for what, conns := range map[string]int{peakWhat: peakConns, eagerWhat: 80, politeWhat: 80, openWhat: 80} {
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

// Refusals are no goodput, and what comes too late to be sent was offered.
func TestOverloadFigures(t *testing.T) {
	s := pressed{latencies: []time.Duration{1, 2, 3}, sent: 12, unsent: 8, refused: 9}
	c := overloadCell{What: openWhat}
	c.fill(&s, 2e9, 3)
	if c.Goodput != 1.5 || c.OfPeak != 0.5 || c.Sent != 6 || c.Offered != 10 || math.Abs(c.Refused-0.75) > 1e-9 {
		t.Errorf("%+v", c)
	}
}

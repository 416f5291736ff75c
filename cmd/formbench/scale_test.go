package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// scaleArgs measure the smallest installations that can be.
func scaleArgs(store string) []string {
	return []string{
		"-only", "scale", "-stores", store, "-rounds", "1", "-duration", "200ms", "-warmup", "20ms",
		"-scale-small", "5000", "-scale-postgres", "5500", "-scale-sqlite", "5500", "-scale-due", "5000",
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, scaleArgs("sqlite")...)
	checkScale(t, table, &r)
}

func TestScalePostgres(t *testing.T) {
	postgrestest.DSN(t) // skips where there is none
	table, r := benchmark(t, scaleArgs("postgres")...)
	checkScale(t, table, &r)
}

func checkScale(t *testing.T, table string, r *result) {
	t.Helper()
	for _, what := range append(scaleReads(), claimWhat, payloadsWhat, outcomesWhat) {
		if !hasRow(table, what, 1) {
			t.Errorf("no row for %s", what)
		}
	}
	for _, conns := range scaleConns() {
		if !hasRow(table, createWhat, conns) {
			t.Errorf("no row for create on %d connections", conns)
		}
	}
	for _, c := range r.Scale {
		if c.Errors != 0 || c.P50 <= 0 || c.P99 < c.P50 || c.Requests == 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	want := len(scaleReads()) + 3 + len(scaleConns())
	if len(r.Goals) != want || len(r.Scale) != 2*want {
		t.Errorf("got %d goals and %d cells, want %d and %d", len(r.Goals), len(r.Scale), want, 2*want)
	}
	tables := make(map[string]bool)
	for _, s := range r.Sizes {
		tables[s.Table] = true
		if s.Rows == 0 || s.Bytes == 0 {
			t.Errorf("implausible size %+v", s)
		}
	}
	if len(tables) != 4 || len(r.Sizes) < 4+6 || !strings.Contains(table, "bytes per row") {
		t.Errorf("sizes are missing: %+v", r.Sizes)
	}
}

// TestScaleKept makes sure that an installation that was kept is used again.
func TestScaleKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 12_000 // so that deliveries are left for the second run
	args := append(scaleArgs("sqlite"), "-dir", dir, "-scale-keep", "-scale-sqlite", strconv.Itoa(n), "-scale-due", strconv.Itoa(n))
	benchmark(t, args...)
	kept, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(kept) != 1 || strings.HasSuffix(kept[0], unfinished) {
		t.Fatalf("kept %q, %v", kept, err)
	}
	_, r := benchmark(t, args...)
	// What the first run created is there in the second one.
	at := slices.IndexFunc(r.Sizes, func(s scaleSize) bool { return s.Table == "formsvc_responses" })
	if at < 0 || r.Sizes[at].Rows <= n {
		t.Errorf("got %+v", r.Sizes)
	}
}

// TestScene holds installations to what is measured on them.
func TestScene(t *testing.T) {
	t.Parallel()
	for _, n := range []int{leastScale, 10_000, 200_000} {
		s := &history{n: n}
		s.firstDue = s.outage(n / 4)
		c := s.count()
		if c.campaigns[0] != int64(n/bigShare) || c.statuses[rareStatus] != rareCount || c.due != int64(n/4) {
			t.Errorf("of %d: %d in the big campaign, %v, %d due", n, c.campaigns[0], c.statuses, c.due)
		}
		if done := c.statuses[formsvc.StatusCompleted]; done < c.campaigns[0]/2 || c.statuses[formsvc.StatusPending] > c.campaigns[0]/20 {
			t.Errorf("of %d: %v", n, c.statuses)
		}
		ids, references := make(map[formsvc.ID]bool, n), make(map[string]bool, n)
		for i := range n {
			for _, id := range []formsvc.ID{s.id(i, false), s.id(i, true)} {
				if _, ok := formsvc.ParseID(string(id)); !ok || ids[id] || id < formsvc.FloorID(s.at(i)) {
					t.Fatalf("identifier %s of %d", id, i)
				}
				ids[id] = true
			}
			if r := s.reference(i); references[r] || len(r) != 11 {
				t.Fatalf("reference %s of %d", r, i)
			} else {
				references[r] = true
			}
		}
	}
}

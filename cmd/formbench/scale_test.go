package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/scale"
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
	for _, what := range append(scale.Reads(), scale.ClaimWhat, scale.PayloadsWhat, scale.OutcomesWhat) {
		if !hasRow(table, what, 1) {
			t.Errorf("no row for %s", what)
		}
	}
	for _, conns := range scale.Conns() {
		if !hasRow(table, requests.CreateWhat, conns) {
			t.Errorf("no row for create on %d connections", conns)
		}
	}
	for _, c := range r.Scale {
		if c.Errors != 0 || c.P50 <= 0 || c.P99 < c.P50 || c.Requests == 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	want := len(scale.Reads()) + 3 + len(scale.Conns())
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
	if err != nil || len(kept) != 1 || strings.HasSuffix(kept[0], scale.Unfinished) {
		t.Fatalf("kept %q, %v", kept, err)
	}
	_, r := benchmark(t, args...)
	// What the first run created is there in the second one.
	at := slices.IndexFunc(r.Sizes, func(s scale.Size) bool { return s.Table == "formsvc_responses" })
	if at < 0 || r.Sizes[at].Rows <= n {
		t.Errorf("got %+v", r.Sizes)
	}
}

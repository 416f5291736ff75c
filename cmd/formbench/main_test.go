package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/benchtest"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// TestMain lets the test binary be the server that a bench starts.
func TestMain(m *testing.M) {
	if benchtest.Command() != "" {
		os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
	}
	benchtest.QuickExit()
	os.Exit(m.Run())
}

// benchmark runs a short measurement and returns its report and its cells. If there was no reply in so short a time, as
// on a busy machine, it measures again, for longer.
func benchmark(t *testing.T, args ...string) (report string, cells result.Cells) {
	t.Helper()
	if raceDetector {
		t.Skip("SKIPPED: what is measured under the race detector takes minutes and says nothing; the tests of its parts run")
	}
	for _, longer := range [][]string{nil, {"-duration", "1s"}, {"-duration", "5s"}} {
		if report, cells = measured(t, slices.Concat(args, longer)...); !slices.ContainsFunc(cells, starved) {
			break
		}
	}
	for i := range cells {
		plausible(t, &cells[i])
	}
	return report, cells
}

// starved reports whether a cell counts requests and has none.
func starved(c result.Cell) bool {
	rate, ok := c.Get("requests/s")
	return ok && rate == 0
}

// plausible checks that latencies ascend, and that nothing is negative except the difference of two clocks.
func plausible(t *testing.T, c *result.Cell) {
	t.Helper()
	last := 0.0
	for _, unit := range []string{"p50-ms", "p99-ms", "p99.9-ms", "max-ms"} {
		if value, ok := c.Get(unit); ok {
			if value < last {
				t.Errorf("%s: %s is %v after %v", c, unit, value, last)
			}
			last = value
		}
	}
	for _, f := range c.Figures {
		clocks := strings.HasPrefix(f.Unit, "other") || strings.HasPrefix(f.Unit, "CPU")
		if f.Value < 0 && !clocks {
			t.Errorf("%s: %v %s", c, f.Value, f.Unit)
		}
		must := slices.Contains([]string{"peak-MB", "requests/s", "deliveries/s", "MB/s", "ready-ms", "bytes/row", "rows", "claim-µs"}, f.Unit)
		if must && f.Value == 0 {
			t.Errorf("%s: no %s", c, f.Unit)
		}
	}
	if len(c.Figures) == 0 {
		t.Errorf("%s: no figures", c)
	}
}

func measured(t *testing.T, args ...string) (report string, cells result.Cells) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out.txt")
	args = append([]string{"-duration", "150ms", "-warmup", "20ms", "-fill", "300",
		"-dir", t.TempDir(), "-out", name}, args...)
	var out, log bytes.Buffer
	if status := run(t.Context(), args, streams{nil, &out, &log}); status != 0 {
		t.Fatalf("exit status %d\n%s\n%s", status, &out, &log)
	}
	return out.String(), read(t, name)
}

func read(t *testing.T, name string) result.Cells {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil || !bytes.Contains(text, []byte("Benchmark")) {
		return nil
	}
	cells, _, err := result.Read(bytes.NewReader(text), name)
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

// holds checks that exactly these keys were measured.
func holds(t *testing.T, cells result.Cells, want ...result.Key) {
	t.Helper()
	got := cells.Keys()
	for _, key := range want {
		if !slices.Contains(got, key) {
			t.Errorf("%+v was not measured", key)
		}
	}
	for _, key := range got {
		if !slices.Contains(want, key) {
			t.Errorf("%+v was measured", key)
		}
	}
}

// every returns a key for each combination.
func every(part, store string, whats []string, conns, sizes []int, systems ...string) (keys []result.Key) {
	for _, what := range whats {
		for _, n := range conns {
			for _, size := range sizes {
				for _, system := range systems {
					keys = append(keys, result.Key{Part: part, What: what, Store: store, System: system, Conns: n, Size: size})
				}
			}
		}
	}
	return keys
}

func TestRejectsInvalidFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-conns", "0"}, {"-conns", "x"}, {"-stores", "oracle"}, {"-only", "nothing"}, {"-rounds", "0"},
		{"-duration", "0s"}, {"-n", "10"}, {"-callers", "0"}, {"-latency", "0s"}, {"-idle", "0s"}, {"-backlog", "0"},
		{"-file-count", "0"}, {"-file-size", "0"}, {"-file-size", "1073741825"}, {"-file-large", "0"}, {"-file-burst", "0"},
		{"-fill", "1"}, {"-unknown"}, {"argument"}, {"-systems", ""},
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

// TestFailedRunKeepsCells checks that a run that fails keeps and reports the cells measured before, also those of the
// failed part, and that they can be rendered.
func TestFailedRunKeepsCells(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "out.txt")
	var out, log bytes.Buffer
	status := run(t.Context(), []string{
		"-duration", "100ms", "-warmup", "10ms", "-rounds", "1", "-stores", "sqlite", "-conns", "1", "-systems", "ceiling", "-only", "create,peers-create",
		"-peer-conns", "1", "-peers", "/bin/false", "-dir", t.TempDir(), "-out", name,
	}, streams{nil, &out, &log})
	if status != 1 || !strings.Contains(log.String(), "peers: peers-create: round 1") || !strings.Contains(out.String(), "### create, sqlite") {
		t.Errorf("exit status %d\n%s\n%s", status, &out, &log)
	}
	holds(t, read(t, name), slices.Concat(
		every(bench.CreatePart, bench.SQLiteStore, []string{bench.CreateWhat}, []int{1}, []int{0}, bench.CeilingSystem),
		every(bench.PeerCreatePart, bench.SQLiteStore, []string{bench.CreateWhat}, []int{1}, []int{0}, bench.CeilingSystem, bench.APISystem),
	)...)
	var rendered bytes.Buffer
	charts := filepath.Join(t.TempDir(), "charts")
	if status := run(t.Context(), []string{"-render", name, "-chart", charts}, streams{nil, &rendered, &log}); status != 0 {
		t.Fatalf("exit status %d: %s", status, &log)
	}
	for _, want := range []string{"![create, sqlite](" + filepath.ToSlash(charts) + "/create-sqlite.svg)", "formsvc over", " 1 of 100ms."} {
		if !strings.Contains(rendered.String(), want) {
			t.Errorf("%q is not in\n%s", want, &rendered)
		}
	}
	if drawn, err := filepath.Glob(filepath.Join(charts, "*.svg")); err != nil || len(drawn) != 2 {
		t.Errorf("drew %q, %v", drawn, err)
	}
	if status := run(t.Context(), []string{"-render", filepath.Join(charts, "create-sqlite.svg")}, streams{nil, io.Discard, io.Discard}); status != 1 {
		t.Errorf("a chart is rendered with exit status %d", status)
	}
}

func TestSkipsWithoutPostgres(t *testing.T) {
	t.Setenv(bench.PostgresEnv, "")
	t.Setenv("CI", "")
	report, _ := benchmark(t, "-stores", "sqlite,postgres", "-rounds", "1", "-only", "create", "-conns", "1")
	if !strings.Contains(report, "SKIPPED: Postgres") {
		t.Errorf("the skip is not loud:\n%s", report)
	}
	t.Setenv("CI", "true")
	var log bytes.Buffer
	if status := run(t.Context(), nil, streams{nil, io.Discard, &log}); status != 1 || !strings.Contains(log.String(), bench.PostgresEnv) {
		t.Errorf("in CI: exit status %d, %s", status, &log)
	}
}

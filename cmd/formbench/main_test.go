package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/benchtest"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
)

// TestMain lets the test binary be the server that a bench starts.
func TestMain(m *testing.M) {
	if benchtest.Command() != "" {
		os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
	}
	benchtest.QuickExit()
	os.Exit(m.Run())
}

// benchmark runs a short measurement and returns what it wrote. Where nothing was
// answered in so short a time, as on a machine that is busy with something else, it
// measures again, for longer.
func benchmark(t *testing.T, args ...string) (table string, r result) {
	t.Helper()
	if raceDetector {
		t.Skip("SKIPPED: what is measured under the race detector takes minutes and says nothing; the tests of its parts run")
	}
	for _, longer := range [][]string{nil, {"-duration", "1s"}, {"-duration", "5s"}} {
		if table, r = measured(t, slices.Concat(args, longer)...); !starved(&r) {
			break
		}
	}
	return table, r
}

// starved reports whether a cell without a single request is among those that count them.
func starved(r *result) bool {
	return slices.ContainsFunc(slices.Concat(r.Cells, r.Peers.Requests, r.Scale), func(c requests.Cell) bool { return c.Requests == 0 })
}

func measured(t *testing.T, args ...string) (table string, r result) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.json")
	args = append([]string{"-duration", "150ms", "-warmup", "20ms", "-large", "1500", "-fill", "300",
		"-dir", t.TempDir(), "-json", file}, args...)
	var out, log bytes.Buffer
	if status := run(t.Context(), args, streams{nil, &out, &log}); status != 0 {
		t.Fatalf("exit status %d\n%s\n%s", status, &out, &log)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cells {
		if c.Errors != 0 || c.P99 < c.P50 || c.Max < c.P99 || c.PeakMB <= 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	return out.String(), r
}

// hasRow reports whether a line of the table begins with these columns.
func hasRow(table string, columns ...any) bool {
	words := make([]string, len(columns))
	for i, c := range columns {
		words[i] = regexp.QuoteMeta(fmt.Sprint(c))
	}
	return regexp.MustCompile(`(?m)^\s*` + strings.Join(words, `\s+`) + `\s`).MatchString(table)
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/goals"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// report writes tables, each under its chart if there are charts, ratios and goals.
func report(b *bench.Bench, source string, out io.Writer) error {
	w := &writer{out: out}
	w.printf("# formbench\n\n%s. Medians, and the range of the rounds; other is everything else on the machine.\n", source)
	for _, note := range b.Notes {
		w.printf("\nNOTE: %s\n", note)
	}
	var charts []string
	var err error
	if b.Charts != "" {
		if charts, err = b.Cells.WriteCharts(b.Charts); err != nil {
			return err
		}
	}
	for i, group := range b.Cells.Group() {
		w.printf("\n### %s\n\n", group.Title())
		if i < len(charts) && charts[i] != "" {
			w.printf("![%s](%s)\n\n", group.Title(), filepath.ToSlash(filepath.Join(b.Charts, charts[i])))
		}
		w.table(group.Table())
		for _, system := range []string{bench.APISystem, bench.OffsetSystem} {
			if ratios := group.Ratios(system, "requests/s", "responses/s", "deliveries/s", "MB/s", "p50-ms", "p99-ms", "CPU-µs", "CPU-s/10k", "CPU-s/GB", "peak-MB"); ratios != nil {
				w.printf("\n")
				w.table(ratios)
			}
		}
	}
	table, missing := goals.Table(goals.All(&b.Options, b.Cells))
	w.printf("\n### goals\n\n")
	w.table(table)
	if missing > 0 {
		w.printf("\n%d goals were not measured.\n", missing)
	}
	return w.err
}

// A writer remembers the first write error.
type writer struct {
	out io.Writer
	err error
}

func (w *writer) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format, args...)
	}
}

func (w *writer) table(table [][]string) {
	if w.err == nil {
		w.err = result.WriteTable(w.out, table)
	}
}

// render reads the results of runs and reports them without measuring.
func render(o *bench.Options, out io.Writer) error {
	b := &bench.Bench{Options: *o}
	var sources []string
	for name := range strings.SplitSeq(o.Render, ",") {
		file, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return err
		}
		cells, source, err := result.Read(file, name)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("render: %w", err)
		}
		b.Cells = append(b.Cells, cells...)
		if !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	return report(b, strings.Join(sources, "; "), out)
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
)

// render reads the results of runs and writes their charts, and their tables as
// Markdown, without measuring.
func render(o *bench.Options, out io.Writer) error {
	w := &report.Writer{Out: out}
	var list []chart.Sheet
	var goals []report.Goal
	var ratios []requests.Ratio
	for file := range strings.SplitSeq(o.Render, ",") {
		r, err := readResult(file)
		if err != nil {
			return err
		}
		list, goals, ratios = slices.Concat(list, r.sheets()), slices.Concat(goals, r.Goals), slices.Concat(ratios, r.Ratios, r.Peers.Ratios)
		for _, note := range r.Notes {
			w.Printf("NOTE: %s: %s\n", filepath.Base(file), note)
		}
		if r.Error != "" {
			w.Printf("NOTE: %s: FAILED: %s\n", filepath.Base(file), r.Error)
		}
	}
	list, err := chart.Joined(list)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	dir := o.Charts
	if dir == "" {
		dir = bench.DefaultCharts
	}
	if err := chart.WriteFiles(dir, list); err != nil {
		return err
	}
	chart.Markdown(w, list, func(s *chart.Sheet) string {
		if len(s.Drawn()) == 0 {
			return ""
		}
		return filepath.ToSlash(filepath.Join(dir, s.File()))
	})
	requests.MarkdownRatios(w, ratios)
	report.MarkdownGoals(w, goals)
	return w.Err
}

// readResult reads what -json wrote.
func readResult(file string) (r result, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // the user names the file
	if err != nil {
		return r, fmt.Errorf("render: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("render: %s: %w", file, err)
	}
	if r.Started.IsZero() {
		return r, errors.New("render: " + file + " is no result of formbench")
	}
	return r, nil
}

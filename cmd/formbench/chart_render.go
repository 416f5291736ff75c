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
)

// defaultCharts is where the charts are that BENCHMARKS.md shows, seen from it.
const defaultCharts = "cmd/formbench/charts"

// render reads the results of runs and writes their charts, and their tables as
// Markdown, without measuring.
func render(o *options, out io.Writer) error {
	w := &report{out: out}
	var list []sheet
	var goals []goal
	var ratios []ratio
	for file := range strings.SplitSeq(o.render, ",") {
		r, err := readResult(file)
		if err != nil {
			return err
		}
		list, goals, ratios = slices.Concat(list, r.sheets()), slices.Concat(goals, r.Goals), slices.Concat(ratios, r.Ratios, r.Peers.Ratios)
		for _, note := range r.Notes {
			w.printf("NOTE: %s: %s\n", filepath.Base(file), note)
		}
		if r.Error != "" {
			w.printf("NOTE: %s: FAILED: %s\n", filepath.Base(file), r.Error)
		}
	}
	list, err := joined(list)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	dir := o.charts
	if dir == "" {
		dir = defaultCharts
	}
	if err := writeCharts(dir, list); err != nil {
		return err
	}
	markdown(w, list, func(s *sheet) string {
		if len(s.drawn()) == 0 {
			return ""
		}
		return filepath.ToSlash(filepath.Join(dir, s.file()))
	})
	markdownRatios(w, ratios)
	markdownGoals(w, goals)
	return w.err
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

// writeCharts writes a file for each sheet that has something to draw.
func writeCharts(dir string, list []sheet) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil { //nolint:gosec // the user names the directory
		return fmt.Errorf("charts: %w", err)
	}
	for i := range list {
		if len(list[i].drawn()) == 0 {
			continue
		}
		file := filepath.Join(dir, list[i].file())
		if err := os.WriteFile(file, list[i].chart(), 0o600); err != nil { //nolint:gosec // the user names the directory
			return fmt.Errorf("charts: %w", err)
		}
	}
	return nil
}

// file names the sheet's chart.
func (s *sheet) file() string { return s.name + ".svg" }

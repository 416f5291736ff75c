package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// A sheet is figures with their ranges, a row for each system of a group. It
// becomes a table in Markdown, and its drawn columns a chart.
type sheet struct {
	name    string // of the chart's file, without extension
	title   string
	note    string // what readers must know
	source  string // where the figures are from
	columns []sheetColumn
	rows    []sheetRow
}

// A sheetColumn is a figure.
type sheetColumn struct {
	title    string
	decimals int
	drawn    direction
}

// A direction tells which figures of a column are good ones.
type direction string

// The columns of a chart say which way they are to be read; others are in the
// table only.
const (
	notDrawn     direction = ""
	moreIsBetter direction = "more is better"
	lessIsBetter direction = "less is better"
)

// A sheetRow is a bar in each drawn column. Rows of a group follow each other.
type sheetRow struct {
	group  string
	label  string
	system string          // gives the bars their colour; the label when empty
	values []*stats.Spread // by column; nil where nothing was measured
}

// newMeasure returns one.
func newMeasure[C any](title string, decimals int, drawn direction, figure func(*C) float64) measure[C] {
	return measure[C]{sheetColumn{title, decimals, drawn}, figure}
}

// A measure is a column with what it takes from a cell, which is not a number when
// there is nothing to measure.
type measure[C any] struct {
	sheetColumn
	figure func(*C) float64
}

// addRows adds a row for each key that has a place, and the measures as the
// columns.
func addRows[K comparable, C any](
	s *sheet, g *stats.Grouping[K, C], place func(K) (row sheetRow, ok bool), measures ...measure[C],
) {
	s.columns = stats.Mapped(measures, func(m *measure[C]) sheetColumn { return m.sheetColumn })
	for _, key := range g.Keys {
		row, ok := place(key)
		if !ok {
			continue
		}
		for _, m := range measures {
			value := g.Spread(key, m.figure)
			if math.IsNaN(value.Median) {
				value = nil
			}
			row.values = append(row.values, value)
		}
		s.rows = append(s.rows, row)
	}
}

// value returns that of a column, or nil.
func (r *sheetRow) value(column int) *stats.Spread {
	if column < len(r.values) {
		return r.values[column]
	}
	return nil
}

// measured returns the columns that have a figure. A part leaves those at 0 that it
// does not measure.
func (s *sheet) measured() (list []int) {
	for i := range s.columns {
		there := func(r sheetRow) bool { v := r.value(i); return v != nil && (v.Lowest != 0 || v.Highest != 0) }
		if slices.ContainsFunc(s.rows, there) {
			list = append(list, i)
		}
	}
	return list
}

// drawn returns the columns of the chart.
func (s *sheet) drawn() []int {
	return slices.DeleteFunc(s.measured(), func(i int) bool { return s.columns[i].drawn == notDrawn })
}

// gathered brings the rows of each group together, in the order in which the
// groups came.
func (s *sheet) gathered() []sheetRow {
	var list []sheetRow
	for _, first := range s.rows {
		if slices.ContainsFunc(list, func(r sheetRow) bool { return r.group == first.group }) {
			continue
		}
		for _, r := range s.rows {
			if r.group == first.group {
				list = append(list, r)
			}
		}
	}
	return list
}

// joined puts sheets of the same name together, of runs that measured different
// rows of them.
func joined(list []sheet) (out []sheet, err error) {
	for _, s := range list {
		at := slices.IndexFunc(out, func(o sheet) bool { return o.name == s.name })
		if at < 0 {
			out = append(out, s)
			continue
		}
		o := &out[at]
		for _, row := range s.rows {
			if slices.ContainsFunc(o.rows, func(r sheetRow) bool { return r.group == row.group && r.label == row.label }) {
				return nil, fmt.Errorf("%s: %s, %s was measured in two of the runs", s.title, row.group, row.label)
			}
		}
		o.rows = slices.Concat(o.rows, s.rows)
		if o.source != s.source {
			o.source += "; " + s.source
		}
	}
	return out, nil
}

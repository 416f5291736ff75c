// Package chart draws figures: a [Sheet] becomes a table in Markdown and, of the columns
// that say which way they are to be read, an SVG. The same sheet gives the same bytes.
package chart

import (
	"fmt"
	"math"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// A Sheet is figures with their ranges, a row for each system of a group. It
// becomes a table in Markdown, and its drawn columns a chart.
type Sheet struct {
	Name    string // of the chart's file, without extension
	Title   string
	Note    string // what readers must know
	Source  string // where the figures are from
	columns []Column
	Rows    []Row
}

// A Column is a figure.
type Column struct {
	title    string
	decimals int
	drawn    Direction
}

// A Direction tells which figures of a column are good ones.
type Direction string

// The columns of a chart say which way they are to be read; others are in the
// table only.
const (
	NotDrawn     Direction = ""
	MoreIsBetter Direction = "more is better"
	LessIsBetter Direction = "less is better"
)

// A Row is a bar in each drawn column. Rows of a group follow each other.
type Row struct {
	Group  string
	Label  string
	System string          // gives the bars their colour; the label when empty
	Values []*stats.Spread // by column; nil where nothing was measured
}

// A Measure is a column with what it takes from a cell, which is not a number when
// there is nothing to measure.
type Measure[C any] struct {
	Column
	figure func(*C) float64
}

// NewMeasure returns a measure, with the title and the decimals of its column.
func NewMeasure[C any](title string, decimals int, drawn Direction, figure func(*C) float64) Measure[C] {
	return Measure[C]{Column{title, decimals, drawn}, figure}
}

// AddRows adds a row for each key that has a place, and the measures as the
// columns.
func AddRows[K comparable, C any](
	s *Sheet, g *stats.Grouping[K, C], place func(K) (row Row, ok bool), measures ...Measure[C],
) {
	s.columns = stats.Mapped(measures, func(m *Measure[C]) Column { return m.Column })
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
			row.Values = append(row.Values, value)
		}
		s.Rows = append(s.Rows, row)
	}
}

// value returns that of a column, or nil.
func (r *Row) value(column int) *stats.Spread {
	if column < len(r.Values) {
		return r.Values[column]
	}
	return nil
}

// measured returns the columns that have a figure. A part leaves those at 0 that it
// does not measure.
func (s *Sheet) measured() (list []int) {
	for i := range s.columns {
		there := func(r Row) bool { v := r.value(i); return v != nil && (v.Lowest != 0 || v.Highest != 0) }
		if slices.ContainsFunc(s.Rows, there) {
			list = append(list, i)
		}
	}
	return list
}

// Drawn returns the columns of the chart.
func (s *Sheet) Drawn() []int {
	return slices.DeleteFunc(s.measured(), func(i int) bool { return s.columns[i].drawn == NotDrawn })
}

// gathered brings the rows of each group together, in the order in which the
// groups came.
func (s *Sheet) gathered() []Row {
	var list []Row
	for _, first := range s.Rows {
		if slices.ContainsFunc(list, func(r Row) bool { return r.Group == first.Group }) {
			continue
		}
		for _, r := range s.Rows {
			if r.Group == first.Group {
				list = append(list, r)
			}
		}
	}
	return list
}

// Joined puts sheets of the same name together, of runs that measured different
// rows of them.
func Joined(list []Sheet) (out []Sheet, err error) {
	for _, s := range list {
		at := slices.IndexFunc(out, func(o Sheet) bool { return o.Name == s.Name })
		if at < 0 {
			out = append(out, s)
			continue
		}
		o := &out[at]
		for _, row := range s.Rows {
			if slices.ContainsFunc(o.Rows, func(r Row) bool { return r.Group == row.Group && r.Label == row.Label }) {
				return nil, fmt.Errorf("%s: %s, %s was measured in two of the runs", s.Title, row.Group, row.Label)
			}
		}
		o.Rows = slices.Concat(o.Rows, s.Rows)
		if o.Source != s.Source {
			o.Source += "; " + s.Source
		}
	}
	return out, nil
}

// Package result has the results of a run: cells with figures. They are kept in the format of Go benchmarks, so that
// benchstat compares runs, and are shown as tables, charts and goals.
package result

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/perf/benchmath"
)

// A Key is common to the cells of all rounds. A part leaves the fields empty that are the same in all its cells.
type Key struct {
	Part   string // of the run
	What   string // the measured operation
	Store  string // or another place
	System string
	Conns  int
	Size   int // responses in the campaign or in all
}

// By returns the key of the same measurement with another system.
func (k Key) By(system string) Key {
	k.System = system
	return k
}

// A Figure is a number with its unit.
type Figure struct {
	Unit  string
	Value float64
}

// A Cell is one row of a table, measured once.
type Cell struct {
	Key
	Round   int // from 1
	Figures []Figure
}

// Get returns a figure, if it was measured.
func (c *Cell) Get(unit string) (value float64, ok bool) {
	for _, f := range c.Figures {
		if f.Unit == unit {
			return f.Value, true
		}
	}
	return 0, false
}

// Add adds a figure.
func (c *Cell) Add(unit string, value float64) { c.Figures = append(c.Figures, Figure{unit, value}) }

// String names the cell in progress lines.
func (c *Cell) String() string {
	words := []string{fmt.Sprintf("round %d, %s", c.Round, c.Part)}
	for _, s := range []string{c.What, c.Store, c.System} {
		if s != "" && s != c.Part {
			words = append(words, s)
		}
	}
	if c.Conns > 0 {
		words = append(words, fmt.Sprintf("connections %d", c.Conns))
	}
	if c.Size > 0 {
		words = append(words, fmt.Sprintf("responses %d", c.Size))
	}
	return strings.Join(words, ", ")
}

// File returns a file name for the cell.
func (c *Cell) File(extension string) string {
	return strings.NewReplacer(", ", "-", " ", "-", "/", "-").Replace(c.String()) + extension
}

// Cells are all measured cells.
type Cells []Cell

// Keys returns the measured keys, in the order of the first round.
func (list Cells) Keys() (keys []Key) {
	seen := make(map[Key]bool)
	for i := range list {
		if !seen[list[i].Key] {
			seen[list[i].Key] = true
			keys = append(keys, list[i].Key)
		}
	}
	return keys
}

// Of returns the cells of a part.
func (list Cells) Of(part string) (some Cells) {
	for i := range list {
		if list[i].Part == part {
			some = append(some, list[i])
		}
	}
	return some
}

// A Spread is the median and the range of a figure over the rounds. It is no confidence interval, which takes at least
// six rounds.
type Spread struct {
	Median, Lowest, Highest float64
	Rounds                  int
}

// NewSpread returns the spread of at least one figure.
func NewSpread(rounds ...float64) *Spread {
	s := benchmath.NewSample(slices.Clone(rounds), &benchmath.DefaultThresholds)
	median := benchmath.AssumeNothing.Summary(s, 0.95).Center
	return &Spread{Median: median, Lowest: s.Values[0], Highest: s.Values[len(s.Values)-1], Rounds: len(rounds)}
}

// Spread returns the spread of a figure, or nil when it was not measured.
func (list Cells) Spread(key Key, unit string) *Spread {
	return list.over(key, unit, func(*Cell) (float64, bool) { return 1, true })
}

// Over returns the ratio of one key's figure to that of another, round by round, or nil.
func (list Cells) Over(a, b Key, unit string) *Spread {
	return list.over(a, unit, func(c *Cell) (float64, bool) {
		for i := range list {
			if list[i].Key == b && list[i].Round == c.Round {
				return list[i].Get(unit)
			}
		}
		return 0, false
	})
}

func (list Cells) over(key Key, unit string, below func(*Cell) (float64, bool)) *Spread {
	var rounds []float64
	for i := range list {
		if list[i].Key != key {
			continue
		}
		value, ok := list[i].Get(unit)
		if by, also := below(&list[i]); ok && also && by > 0 {
			rounds = append(rounds, value/by)
		}
	}
	if len(rounds) == 0 {
		return nil
	}
	return NewSpread(rounds...)
}

// Most returns the maximum of a figure over the chosen cells, or nil.
func (list Cells) Most(unit string, chosen func(*Cell) bool) *Spread {
	var most *Spread
	for i := range list {
		value, ok := list[i].Get(unit)
		if ok && chosen(&list[i]) && (most == nil || value > most.Median) {
			most = NewSpread(value)
		}
	}
	return most
}

// String returns the median, and the range when there was more than one round.
func (s *Spread) String() string {
	switch {
	case s == nil:
		return ""
	case s.Rounds < 2:
		return Spell(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", Spell(s.Median), Spell(s.Lowest), Spell(s.Highest))
}

// Spell formats a number with about three digits, and commas between thousands.
func Spell(x float64) string {
	decimals := 3
	for limit := 1.0; decimals > 0 && (x >= limit || -x >= limit || x == 0); limit *= 10 {
		decimals--
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	whole, fraction, found := strings.Cut(text, ".")
	sign := strings.TrimRight(whole, "0123456789")
	whole = whole[len(sign):]
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if found {
		whole += "." + fraction
	}
	return sign + whole
}

// Group returns the cells of each part on each store, in their order.
func (list Cells) Group() (groups []Cells) {
	var order []Key
	for i := range list {
		key := Key{Part: list[i].Part, Store: list[i].Store}
		at := slices.Index(order, key)
		if at < 0 {
			at = len(order)
			order, groups = append(order, key), append(groups, nil)
		}
		groups[at] = append(groups[at], list[i])
	}
	return groups
}

// Title returns the heading of a group.
func (list Cells) Title() string {
	return strings.TrimSuffix(list[0].Part+", "+list[0].Store, ", ")
}

// units returns the units of the figures that are not 0 in all cells.
func (list Cells) units() (units []string) {
	for i := range list {
		for _, f := range list[i].Figures {
			if f.Value != 0 && !slices.Contains(units, f.Unit) {
				units = append(units, f.Unit)
			}
		}
	}
	return units
}

// Table returns the cells of a group as a table with its head. Each key has a row, with the medians and ranges over the
// rounds.
func (list Cells) Table() [][]string {
	units := list.units()
	table := [][]string{append([]string{"", "conns", "size", "system"}, units...)}
	for _, key := range list.Keys() {
		row := []string{key.What, number(key.Conns), number(key.Size), key.System}
		for _, unit := range units {
			row = append(row, list.Spread(key, unit).String())
		}
		table = append(table, row)
	}
	return dense(table)
}

// Ratios returns the figures of a system over those of each other one, within rounds, as a table with its head, or nil.
func (list Cells) Ratios(system string, units ...string) [][]string {
	table := [][]string{append([]string{"", "conns", "size", system + " over"}, units...)}
	for _, ours := range list.Keys() {
		if ours.System != system {
			continue
		}
		for _, theirs := range list.Keys() {
			if theirs == ours || theirs != ours.By(theirs.System) {
				continue
			}
			row := []string{ours.What, number(ours.Conns), number(ours.Size), theirs.System}
			for _, unit := range units {
				row = append(row, list.Over(ours, theirs, unit).String())
			}
			table = append(table, row)
		}
	}
	if len(table) == 1 {
		return nil
	}
	return dense(table)
}

// dense removes the columns that are empty below the head.
func dense(table [][]string) [][]string {
	for col := len(table[0]) - 1; col > 0; col-- {
		if slices.ContainsFunc(table[1:], func(row []string) bool { return row[col] != "" }) {
			continue
		}
		for i := range table {
			table[i] = slices.Delete(table[i], col, col+1)
		}
	}
	return table
}

// WriteTable writes a Markdown table with aligned columns, so that its source is readable, too.
func WriteTable(w io.Writer, table [][]string) error {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, field := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(field), 3)
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width-1) + ":"
	}
	rule[0] = strings.Repeat("-", widths[0])
	for i, row := range table {
		padded := make([]string, len(row))
		for k, field := range row {
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(field))
			padded[k] = pad + field
			if k == 0 {
				padded[k] = field + pad
			}
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(padded, " | ")); err != nil {
			return err
		}
		if i == 0 {
			if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(rule, " | ")); err != nil {
				return err
			}
		}
	}
	return nil
}

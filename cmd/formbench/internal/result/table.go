package result

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

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

// Title is the heading of a group.
func (list Cells) Title() string {
	return strings.TrimSuffix(list[0].Part+", "+list[0].Store, ", ")
}

// units returns those of the figures that are not 0 in all cells.
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

// Table returns the cells of a group as a table with its head: a row for each key, with the medians of the rounds and
// their range.
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

// dense leaves out the columns that have nothing below the head.
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

// WriteTable writes a table of Markdown, in columns that are aligned for those who read it as it is.
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

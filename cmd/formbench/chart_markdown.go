package main

import (
	"fmt"
	"strconv"
	"strings"
)

// thousands puts commas into a number.
func thousands(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

func decimal(x float64, decimals int) string {
	return thousands(strconv.FormatFloat(x, 'f', decimals, 64))
}

// spelled returns the median, and the range when there was more than one round,
// or nothing when nothing was measured.
func (s *spread) spelled(decimals int) string {
	if s == nil {
		return ""
	}
	if len(s.Rounds) < 2 {
		return decimal(s.Median, decimals)
	}
	return fmt.Sprintf("%s (%s–%s)", decimal(s.Median, decimals), decimal(s.Lowest, decimals), decimal(s.Highest, decimals))
}

// markdown writes tables, each under its chart when that has a link.
func markdown(w *report, list []sheet, link func(*sheet) string) {
	for i := range list {
		s := &list[i]
		w.printf("\n### %s\n\n", s.title)
		if target := link(s); target != "" {
			w.printf("![%s](%s)\n\n", s.title, target)
		}
		w.printf("%s.", s.source)
		if s.note != "" {
			w.printf(" %s.", s.note)
		}
		w.printf("\n\n")
		w.markdownTable(2, s.table())
	}
}

// table returns the rows as text, with the title. A group is named once.
func (s *sheet) table() [][]string {
	title := []string{"", ""}
	columns := s.measured()
	for _, i := range columns {
		title = append(title, s.columns[i].title)
	}
	table := [][]string{title}
	last := ""
	for _, row := range s.gathered() {
		line := []string{row.group, row.label}
		if row.group == last {
			line[0] = ""
		}
		last = row.group
		for _, i := range columns {
			line = append(line, row.value(i).spelled(s.columns[i].decimals))
		}
		table = append(table, line)
	}
	return table
}

// markdownTable writes a table whose first row is the title and whose first left
// columns are text.
func (w *report) markdownTable(left int, table [][]string) {
	for i, line := range table {
		w.printf("| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			w.printf("|%s%s\n", strings.Repeat("---|", left), strings.Repeat("--:|", len(line)-left))
		}
	}
}

// markdownGoals writes the goals that were measured.
func markdownGoals(w *report, list []goal) {
	table := [][]string{{"goal", "store", "", "median (range)"}}
	for _, g := range list {
		if !g.Measured {
			continue
		}
		verdict := g.verdict()
		if !g.Reached {
			verdict = "**missed**"
		}
		table = append(table, []string{g.Text, storeTitle(g.Store), verdict, g.Value.spelled(significant(g.Value.Median))})
	}
	if len(table) > 1 {
		w.printf("\n### Goals\n\n")
		w.markdownTable(3, table)
	}
}

// markdownRatios writes the ratios within a round.
func markdownRatios(w *report, list []ratio) {
	if len(list) == 0 {
		return
	}
	w.printf("\n### Ratios within a round\n\n")
	table := [][]string{{"", "", "", "responses", "connections", "median (range)"}}
	for _, r := range list {
		table = append(table, []string{
			r.Of, r.What, storeTitle(r.Store), decimal(float64(r.Responses), 0), strconv.Itoa(r.Conns), r.spelled(2),
		})
	}
	w.markdownTable(3, table)
}

// significant returns how many decimals leave about three digits.
func significant(x float64) int {
	switch {
	case x >= 100:
		return 0
	case x >= 10:
		return 1
	}
	return 2
}

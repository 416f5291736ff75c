package main

import (
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

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
			line = append(line, row.value(i).Spelled(s.columns[i].decimals))
		}
		table = append(table, line)
	}
	return table
}

// counted returns a number with its noun, which gets an s unless it is one.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return stats.Thousands(strconv.Itoa(n)) + " " + noun
}

package chart

import (
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// Markdown writes tables, each under its chart when that has a link.
func Markdown(w *report.Writer, list []Sheet, link func(*Sheet) string) {
	for i := range list {
		s := &list[i]
		w.Printf("\n### %s\n\n", s.Title)
		if target := link(s); target != "" {
			w.Printf("![%s](%s)\n\n", s.Title, target)
		}
		w.Printf("%s.", s.Source)
		if s.Note != "" {
			w.Printf(" %s.", s.Note)
		}
		w.Printf("\n\n")
		w.MarkdownTable(2, s.table())
	}
}

// table returns the rows as text, with the title. A group is named once.
func (s *Sheet) table() [][]string {
	title := []string{"", ""}
	columns := s.measured()
	for _, i := range columns {
		title = append(title, s.columns[i].title)
	}
	table := [][]string{title}
	last := ""
	for _, row := range s.gathered() {
		line := []string{row.Group, row.Label}
		if row.Group == last {
			line[0] = ""
		}
		last = row.Group
		for _, i := range columns {
			line = append(line, row.value(i).Spelled(s.columns[i].decimals))
		}
		table = append(table, line)
	}
	return table
}

// Counted returns a number with its noun, which gets an s unless it is one.
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return stats.Thousands(strconv.Itoa(n)) + " " + noun
}

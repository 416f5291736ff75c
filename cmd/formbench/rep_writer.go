package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A report remembers the first failure to write.
type report struct {
	out io.Writer
	err error
}

func (w *report) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format, args...)
	}
}

// table writes rows in aligned columns; the first left columns are text.
func (w *report) table(left int, rows [][]string) {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	widths := make([]int, left)
	for _, row := range rows {
		for i := range left {
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	for _, row := range rows {
		for i, field := range row {
			if i < left {
				field += strings.Repeat(" ", widths[i]-len([]rune(field)))
			}
			_, _ = fmt.Fprint(t, field, "\t")
		}
		_, _ = fmt.Fprintln(t)
	}
	_ = t.Flush() // a strings.Builder takes everything
	w.printf("%s", text.String())
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

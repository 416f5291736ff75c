// Package report writes tables of text and of Markdown, and compares figures with goals.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A Writer remembers the first failure to write.
type Writer struct {
	Out io.Writer
	Err error
}

// Printf writes text, unless something before could not be written.
func (w *Writer) Printf(format string, args ...any) {
	if w.Err == nil {
		_, w.Err = fmt.Fprintf(w.Out, format, args...)
	}
}

// Table writes rows in aligned columns; the first left columns are text.
func (w *Writer) Table(left int, rows [][]string) {
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
	w.Printf("%s", text.String())
}

// MarkdownTable writes a table whose first row is the title and whose first left
// columns are text.
func (w *Writer) MarkdownTable(left int, table [][]string) {
	for i, line := range table {
		w.Printf("| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			w.Printf("|%s%s\n", strings.Repeat("---|", left), strings.Repeat("--:|", len(line)-left))
		}
	}
}

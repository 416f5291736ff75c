package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report writes the tables.
func (r *result) report(out io.Writer) error {
	w := &report{out: out}
	o := &r.Options
	r.header(w)
	reportCells(w, r.Cells)
	reportRatios(w, r.Ratios)
	reportDeliveries(w, o, r.Deliveries)
	reportFiles(w, o, r.Files)
	reportOverloads(w, r.Overloads)
	reportPeers(w, &r.Peers)
	reportScale(w, o, r.Scale)
	reportSizes(w, r.Sizes)
	reportGoals(w, r.Goals)
	if r.Error != "" {
		w.printf("\nFAILED: %s\n", r.Error)
	}
	return w.err
}

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

func (r *result) header(w *report) {
	o := &r.Options
	w.printf("formbench %s\n%d CPUs (%s), Linux %s, %s\n", r.Started.Format("2006-01-02 15:04:05 UTC"),
		r.Machine.CPUs, r.Machine.Model, r.Machine.Kernel, r.Machine.Go)
	w.printf("%d rounds; medians (lowest–highest) of the rounds; other is everything else on the machine\n", o.Rounds)
	if o.requests() {
		w.printf("requests: %v after %v of warm-up; server, other, generator: µs of CPU time per request\n", o.Duration, o.Warmup)
	}
	if o.delivers() {
		w.printf("deliveries: the reference signs and posts the same payload from memory, before and after each cell\n")
	}
	if slices.Contains(o.Only, filesPart) {
		w.printf("files: MB and GB are powers of ten; server, S3, generator, other: seconds of CPU time per GB\n")
	}
	for _, note := range r.Notes {
		w.printf("NOTE: %s\n", note)
	}
}

// reportCells writes a table for each store of each part.
func reportCells(w *report, cells []cell) {
	type section struct{ part, store string }
	var order []section
	bySection := make(map[section][]cell)
	for _, c := range cells {
		s := section{partOf(c.What), c.Store}
		if bySection[s] == nil {
			order = append(order, s)
		}
		bySection[s] = append(bySection[s], c)
	}
	slices.SortStableFunc(order, func(a, b section) int {
		return slices.Index(allParts(), a.part) - slices.Index(allParts(), b.part)
	})
	for _, s := range order {
		w.printf("\n%s, %s\n", s.part, s.store)
		table := [][]string{{
			"", "responses", "connections", "system", "requests/s", "p50 ms", "p99 ms", "max ms", "errors",
			"server µs", "other µs", "generator µs", "other cores", "peak MB",
		}}
		r := newRows(bySection[s])
		for _, key := range r.keys {
			table = append(table, r.line(key))
		}
		w.table(1, table)
	}
}

func partOf(what string) string {
	switch what {
	case createWhat:
		return createPart
	case getWhat, listWhat:
		return readPart
	case checksWhat:
		return checksPart
	}
	return depthPart
}

// line returns the row as text. Of the worst latency and the memory the highest
// says all.
func (r *rows) line(key rowKey) []string {
	text := func(decimals int, figure func(*cell) float64) string {
		return r.spread(key, figure).text(decimals)
	}
	highest := func(decimals int, figure func(*cell) float64) string {
		return strconv.FormatFloat(r.spread(key, figure).Highest, 'f', decimals, 64)
	}
	errors := 0
	for _, c := range r.cells[key] {
		errors += c.Errors
	}
	return []string{
		key.What, strconv.Itoa(key.Responses), strconv.Itoa(key.Conns), key.system,
		text(0, func(c *cell) float64 { return c.PerSecond }),
		text(3, func(c *cell) float64 { return c.P50 }),
		text(2, func(c *cell) float64 { return c.P99 }),
		highest(1, func(c *cell) float64 { return c.Max }),
		strconv.Itoa(errors),
		text(0, func(c *cell) float64 { return c.ServerMicros }),
		text(0, func(c *cell) float64 { return c.OtherMicros }),
		text(0, func(c *cell) float64 { return c.GeneratorMicros }),
		text(2, func(c *cell) float64 { return c.OtherCores }),
		highest(0, func(c *cell) float64 { return c.PeakMB }),
	}
}

func reportRatios(w *report, list []ratio) {
	if len(list) == 0 {
		return
	}
	w.printf("\nratios within a round\n")
	table := [][]string{{"", "", "", "responses", "connections", "rounds", "median (range)"}}
	for _, r := range list {
		rounds := make([]string, len(r.Rounds))
		for i, x := range r.Rounds {
			rounds[i] = fmt.Sprintf("%.2f", x)
		}
		table = append(table, []string{
			r.Of, r.What, r.Store, strconv.Itoa(r.Responses), strconv.Itoa(r.Conns), strings.Join(rounds, " "), r.text(2),
		})
	}
	w.table(3, table)
}

// reportGoals writes the goals that were measured, and how many were not.
func reportGoals(w *report, list []goal) {
	w.printf("\ngoals\n")
	var table [][]string
	for _, g := range list {
		if g.Measured {
			table = append(table, []string{g.verdict(), g.Text, g.Store, g.Value.text(g.decimals) + g.unit})
		}
	}
	w.table(3, table)
	if missing := len(list) - len(table); missing > 0 {
		w.printf("  (%d goals were not measured)\n", missing)
	}
}

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
	"github.com/formsvc/toolkit/cmd/formbench/internal/deliver"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/overload"
	"github.com/formsvc/toolkit/cmd/formbench/internal/peers"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/scale"
)

// report writes the tables.
func (r *result) report(out io.Writer) error {
	w := &report.Writer{Out: out}
	o := &r.Options
	r.header(w)
	requests.Report(w, r.Cells)
	requests.ReportRatios(w, r.Ratios)
	deliver.Report(w, o, r.Deliveries)
	files.Report(w, o, r.Files)
	overload.Report(w, r.Overloads)
	peers.Report(w, &r.Peers)
	scale.Report(w, o, r.Scale)
	scale.ReportSizes(w, r.Sizes)
	report.Goals(w, r.Goals)
	if r.Error != "" {
		w.Printf("\nFAILED: %s\n", r.Error)
	}
	return w.Err
}

func (r *result) header(w *report.Writer) {
	o := &r.Options
	w.Printf("formbench %s\n%d CPUs (%s), Linux %s, %s\n", r.Started.Format("2006-01-02 15:04:05 UTC"),
		r.Machine.CPUs, r.Machine.Model, r.Machine.Kernel, r.Machine.Go)
	w.Printf("%d rounds; medians (lowest–highest) of the rounds; other is everything else on the machine\n", o.Rounds)
	if o.SendsRequests() {
		w.Printf("requests: %v after %v of warm-up; server, other, generator: µs of CPU time per request\n", o.Duration, o.Warmup)
	}
	if o.Delivers() {
		w.Printf("deliveries: the reference signs and posts the same payload from memory, before and after each cell\n")
	}
	if slices.Contains(o.Only, bench.FilesPart) {
		w.Printf("files: MB and GB are powers of ten; server, S3, generator, other: seconds of CPU time per GB\n")
	}
	for _, note := range r.Notes {
		w.Printf("NOTE: %s\n", note)
	}
}

// sheets returns what a run measured.
func (r *result) sheets() []chart.Sheet {
	list := slices.Concat(requests.Sheets(r.Cells), deliver.Sheets(r.Deliveries), files.Sheets(r.Files), overload.Sheets(r.Overloads),
		peers.Sheets(&r.Peers), scale.Sheets(r.Scale))
	list = slices.DeleteFunc(list, func(s chart.Sheet) bool { return len(s.Rows) == 0 })
	for i := range list {
		list[i].Source = r.source()
	}
	return list
}

// source tells where figures are from.
func (r *result) source() string {
	m := &r.Machine
	return fmt.Sprintf("%s: %d CPUs (%s), Linux %s, %s", r.Started.Format("2 January 2006"), m.CPUs, m.Model, m.Kernel, m.Go)
}

package main

import (
	"fmt"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
	"github.com/formsvc/toolkit/cmd/formbench/internal/deliver"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/overload"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/scale"
)

// sheets returns what a run measured.
func (r *result) sheets() []chart.Sheet {
	list := slices.Concat(requests.Sheets(r.Cells), deliver.Sheets(r.Deliveries), files.Sheets(r.Files), overload.Sheets(r.Overloads),
		peerSheets(&r.Peers), scale.Sheets(r.Scale))
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

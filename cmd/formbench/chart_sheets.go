package main

import (
	"fmt"
	"slices"
)

// sheets returns what a run measured.
func (r *result) sheets() []sheet {
	list := slices.Concat(requestSheets(r.Cells), deliverSheets(r.Deliveries), fileSheets(r.Files), overloadSheets(r.Overloads),
		peerSheets(&r.Peers), scaleSheets(r.Scale))
	list = slices.DeleteFunc(list, func(s sheet) bool { return len(s.rows) == 0 })
	for i := range list {
		list[i].source = r.source()
	}
	return list
}

// source tells where figures are from.
func (r *result) source() string {
	m := &r.Machine
	return fmt.Sprintf("%s: %d CPUs (%s), Linux %s, %s", r.Started.Format("2 January 2006"), m.CPUs, m.Model, m.Kernel, m.Go)
}

package main

import (
	"math"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// fileSheets returns one of speed and one of memory.
func fileSheets(cells []fileCell) []sheet {
	r := newFileRows(cells)
	memory := func(key fileKey) bool { return key.what == largeWhat || key.what == burstWhat }
	place := func(want bool) func(fileKey) (sheetRow, bool) {
		return func(key fileKey) (sheetRow, bool) {
			return sheetRow{group: key.what + ", " + key.place, label: key.system, system: key.system}, memory(key) == want
		}
	}
	speed := sheet{name: bench.FilesPart, title: "Files", note: "CPU: of the server and of S3"}
	addRows(&speed, &r.Grouping, place(false),
		newMeasure("MB/s", 0, moreIsBetter, megabytesPerSecond),
		newMeasure("CPU s/GB", 2, lessIsBetter, func(c *fileCell) float64 { return c.ServerCPU + c.S3CPU }),
		newMeasure("peak MB", 0, lessIsBetter, serverPeak),
	)
	grown := sheet{name: bench.FilesPart + "-memory", title: "By how much files make the server grow"}
	addRows(&grown, &r.Grouping, place(true),
		newMeasure("MB", 1, lessIsBetter, func(c *fileCell) float64 { return c.GrownMB }))
	return []sheet{speed, grown}
}

// serverPeak is the memory of the server, where there is one.
func serverPeak(c *fileCell) float64 {
	if c.System == minioSystem {
		return math.NaN()
	}
	return c.PeakMB
}

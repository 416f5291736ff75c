package main

import (
	"math"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
)

// fileSheets returns one of speed and one of memory.
func fileSheets(cells []fileCell) []chart.Sheet {
	r := newFileRows(cells)
	memory := func(key fileKey) bool { return key.what == largeWhat || key.what == burstWhat }
	place := func(want bool) func(fileKey) (chart.Row, bool) {
		return func(key fileKey) (chart.Row, bool) {
			return chart.Row{Group: key.what + ", " + key.place, Label: key.system, System: key.system}, memory(key) == want
		}
	}
	speed := chart.Sheet{Name: bench.FilesPart, Title: "Files", Note: "CPU: of the server and of S3"}
	chart.AddRows(&speed, &r.Grouping, place(false),
		chart.NewMeasure("MB/s", 0, chart.MoreIsBetter, megabytesPerSecond),
		chart.NewMeasure("CPU s/GB", 2, chart.LessIsBetter, func(c *fileCell) float64 { return c.ServerCPU + c.S3CPU }),
		chart.NewMeasure("peak MB", 0, chart.LessIsBetter, serverPeak),
	)
	grown := chart.Sheet{Name: bench.FilesPart + "-memory", Title: "By how much files make the server grow"}
	chart.AddRows(&grown, &r.Grouping, place(true),
		chart.NewMeasure("MB", 1, chart.LessIsBetter, func(c *fileCell) float64 { return c.GrownMB }))
	return []chart.Sheet{speed, grown}
}

// serverPeak is the memory of the server, where there is one.
func serverPeak(c *fileCell) float64 {
	if c.System == minioSystem {
		return math.NaN()
	}
	return c.PeakMB
}

package files

import (
	"math"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/chart"
)

// Sheets returns one of speed and one of memory.
func Sheets(cells []Cell) []chart.Sheet {
	r := NewRows(cells)
	memory := func(key RowKey) bool { return key.What == LargeWhat || key.What == BurstWhat }
	place := func(want bool) func(RowKey) (chart.Row, bool) {
		return func(key RowKey) (chart.Row, bool) {
			return chart.Row{Group: key.What + ", " + key.Place, Label: key.System, System: key.System}, memory(key) == want
		}
	}
	speed := chart.Sheet{Name: bench.FilesPart, Title: "Files", Note: "CPU: of the server and of S3"}
	chart.AddRows(&speed, &r.Grouping, place(false),
		chart.NewMeasure("MB/s", 0, chart.MoreIsBetter, MegabytesPerSecond),
		chart.NewMeasure("CPU s/GB", 2, chart.LessIsBetter, func(c *Cell) float64 { return c.ServerCPU + c.S3CPU }),
		chart.NewMeasure("peak MB", 0, chart.LessIsBetter, ServerPeak),
	)
	grown := chart.Sheet{Name: bench.FilesPart + "-memory", Title: "By how much files make the server grow"}
	chart.AddRows(&grown, &r.Grouping, place(true),
		chart.NewMeasure("MB", 1, chart.LessIsBetter, func(c *Cell) float64 { return c.GrownMB }))
	return []chart.Sheet{speed, grown}
}

// ServerPeak is the memory of the server, where there is one.
func ServerPeak(c *Cell) float64 {
	if c.System == MinioSystem {
		return math.NaN()
	}
	return c.PeakMB
}

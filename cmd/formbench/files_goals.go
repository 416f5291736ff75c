package main

import (
	"fmt"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// fileRows are the cells of files.
type fileRows struct {
	stats.Grouping[fileKey, fileCell]
}

type fileKey struct{ what, place, system string }

func newFileRows(cells []fileCell) fileRows {
	return fileRows{stats.Group(cells, func(c *fileCell) fileKey { return fileKey{c.What, c.Place, c.System} })}
}

func megabytesPerSecond(c *fileCell) float64 { return c.PerSecond }

// of returns how fast a system is over how fast another one does the same, round
// by round, or nil. The others know no forms, so that theirs is any upload.
func (r *fileRows) of(key fileKey, system string) *stats.Spread {
	other := fileKey{key.what, key.place, system}
	if other.what == formWhat {
		other.what = uploadWhat
	}
	return r.Over(key, other, func(c *fileCell) int { return c.Round }, megabytesPerSecond)
}

// What the API must reach of a plain copy, and of S3 without it; and by how many
// MB its memory may grow for any one file.
const (
	leastOfCopy  = 0.6
	leastOfMinio = 0.7
	mostOnDisk   = 31.9
	mostOnS3     = 63.9
)

// fileGoals compares the figures with what they should be. There are none unless
// files were to be measured.
func fileGoals(o *bench.Options, cells []fileCell) (list []report.Goal) {
	if !slices.Contains(o.Only, bench.FilesPart) {
		return nil
	}
	r := newFileRows(cells)
	for _, x := range []struct {
		what, place, system string
		least               float64
	}{
		{uploadWhat, diskPlace, bench.CopySystem, leastOfCopy},
		{formWhat, diskPlace, bench.CopySystem, leastOfCopy},
		{downloadWhat, diskPlace, bench.CopySystem, leastOfCopy},
		{uploadWhat, s3Place, minioSystem, leastOfMinio},
		{downloadWhat, s3Place, minioSystem, leastOfMinio},
	} {
		g := report.Goal{
			Text: fmt.Sprintf("%s: MB/s ≥ %g of %s", x.what, x.least, x.system), Store: x.place,
			Bound: x.least, AtLeast: true, Decimals: 2,
		}
		list = append(list, g.Met(r.of(fileKey{x.what, x.place, bench.APISystem}, x.system)))
	}
	for _, x := range []struct {
		place string
		most  float64
	}{{diskPlace, mostOnDisk}, {s3Place, mostOnS3}} {
		g := report.Goal{
			Text: fmt.Sprintf("%s: memory grows by < %.0f MB", largeWhat, x.most), Store: x.place,
			Bound: x.most, Decimals: 1, Unit: " MB",
		}
		grown := r.Spread(fileKey{largeWhat, x.place, bench.APISystem}, func(c *fileCell) float64 { return c.GrownMB })
		list = append(list, g.Met(grown))
	}
	return list
}

package files

import (
	"fmt"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// Rows are the cells of files.
type Rows struct {
	stats.Grouping[RowKey, Cell]
}

// A RowKey is what the cells of a row have in common.
type RowKey struct{ What, Place, System string }

// NewRows groups cells.
func NewRows(cells []Cell) Rows {
	return Rows{stats.Group(cells, func(c *Cell) RowKey { return RowKey{c.What, c.Place, c.System} })}
}

// MegabytesPerSecond is how fast the cell was.
func MegabytesPerSecond(c *Cell) float64 { return c.PerSecond }

// of returns how fast a system is over how fast another one does the same, round
// by round, or nil. The others know no forms, so that theirs is any upload.
func (r *Rows) of(key RowKey, system string) *stats.Spread {
	other := RowKey{key.What, key.Place, system}
	if other.What == FormWhat {
		other.What = UploadWhat
	}
	return r.Over(key, other, func(c *Cell) int { return c.Round }, MegabytesPerSecond)
}

// What the API must reach of a plain copy, and of S3 without it; and by how many
// MB its memory may grow for any one file.
const (
	leastOfCopy  = 0.6
	leastOfMinio = 0.7
	mostOnDisk   = 31.9
	mostOnS3     = 63.9
)

// Goals compares the figures with what they should be. There are none unless
// files were to be measured.
func Goals(o *bench.Options, cells []Cell) (list []report.Goal) {
	if !slices.Contains(o.Only, bench.FilesPart) {
		return nil
	}
	r := NewRows(cells)
	for _, x := range []struct {
		what, place, system string
		least               float64
	}{
		{UploadWhat, DiskPlace, bench.CopySystem, leastOfCopy},
		{FormWhat, DiskPlace, bench.CopySystem, leastOfCopy},
		{DownloadWhat, DiskPlace, bench.CopySystem, leastOfCopy},
		{UploadWhat, S3Place, MinioSystem, leastOfMinio},
		{DownloadWhat, S3Place, MinioSystem, leastOfMinio},
	} {
		g := report.Goal{
			Text: fmt.Sprintf("%s: MB/s ≥ %g of %s", x.what, x.least, x.system), Store: x.place,
			Bound: x.least, AtLeast: true, Decimals: 2,
		}
		list = append(list, g.Met(r.of(RowKey{x.what, x.place, bench.APISystem}, x.system)))
	}
	for _, x := range []struct {
		place string
		most  float64
	}{{DiskPlace, mostOnDisk}, {S3Place, mostOnS3}} {
		g := report.Goal{
			Text: fmt.Sprintf("%s: memory grows by < %.0f MB", LargeWhat, x.most), Store: x.place,
			Bound: x.most, Decimals: 1, Unit: " MB",
		}
		grown := r.Spread(RowKey{LargeWhat, x.place, bench.APISystem}, func(c *Cell) float64 { return c.GrownMB })
		list = append(list, g.Met(grown))
	}
	return list
}

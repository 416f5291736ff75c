package files

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
)

// Report writes a table of what was compared, and one of memory.
func Report(w *report.Writer, o *bench.Options, cells []Cell) {
	if len(cells) == 0 {
		return
	}
	rows := NewRows(cells)
	speed := [][]string{{
		"", "", "", "MB/s", "of copy", "of copy, hash, sync", "of minio-go", "server", "S3", "generator", "other", "peak MB",
	}}
	memory := [][]string{{"", "", "", "grown MB", "by uploading", "MB/s"}}
	for _, key := range rows.Keys {
		if key.What == LargeWhat || key.What == BurstWhat {
			memory = append(memory, rows.memory(key))
		} else {
			speed = append(speed, rows.speed(key))
		}
	}
	w.Printf("\nfiles: %d of %s, one after the other over one connection\n", o.FileCount, SizeText(o.FileSize))
	w.Table(3, speed)
	if !slices.ContainsFunc(rows.Keys, func(key RowKey) bool { return key.Place == S3Place }) {
		w.Printf("  S3: not measured\n")
	}
	w.Printf("\nmemory of the server, over what a file of %s took: %s of %s up and down; %s of %d × %s at once\n",
		SizeText(warmSize), LargeWhat, SizeText(o.FileLarge), BurstWhat, o.FileBurst, SizeText(burstSize(o)))
	w.Table(3, memory)
}

// speed returns a row of the first table.
func (r *Rows) speed(key RowKey) []string {
	text := func(decimals int, figure func(*Cell) float64) string { return r.Spread(key, figure).Text(decimals) }
	of := func(system string) string {
		if over := r.of(key, system); over != nil && key.System != system {
			return over.Text(2)
		}
		return ""
	}
	line := []string{
		key.What, key.Place, key.System, text(0, MegabytesPerSecond),
		of(bench.CopySystem), of(bench.CarefulSystem), of(MinioSystem),
		text(2, func(c *Cell) float64 { return c.ServerCPU }),
		text(2, func(c *Cell) float64 { return c.S3CPU }),
		text(2, func(c *Cell) float64 { return c.GeneratorCPU }),
		text(2, func(c *Cell) float64 { return c.OtherCPU }),
		strconv.FormatFloat(r.Spread(key, func(c *Cell) float64 { return c.PeakMB }).Highest, 'f', 0, 64),
	}
	if key.System == MinioSystem {
		line[7], line[11] = "", "" // there is no server
	}
	if key.Place == DiskPlace {
		line[8] = ""
	}
	return line
}

// memory returns a row of the second table.
func (r *Rows) memory(key RowKey) []string {
	text := func(decimals int, figure func(*Cell) float64) string { return r.Spread(key, figure).Text(decimals) }
	up := ""
	if key.What == LargeWhat { // a burst does nothing else
		up = text(1, func(c *Cell) float64 { return c.GrownUpMB })
	}
	grown := text(1, func(c *Cell) float64 { return c.GrownMB })
	return []string{key.What, key.Place, key.System, grown, up, text(0, MegabytesPerSecond)}
}

// SizeText returns a size in the largest unit that has no fraction.
func SizeText(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1_000_000_000, "GB"}, {1_000_000, "MB"}, {1_000, "kB"}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

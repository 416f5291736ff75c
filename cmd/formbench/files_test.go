package main

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
)

// filesSmall makes the part with files short. The sizes are multiples of nothing.
var filesSmall = []string{"-rounds", "1", "-only", bench.FilesPart, "-file-size", "70001", "-file-count", "2",
	"-file-large", "2100007", "-file-burst", "3"}

func TestFilesEveryCell(t *testing.T) {
	needS3(t)
	t.Parallel()
	dir := t.TempDir()
	table, r := benchmark(t, append(slices.Clone(filesSmall), "-dir", dir, "-stores", "postgres")...)
	for _, row := range [][]any{
		{uploadWhat, diskPlace, bench.CopySystem}, {uploadWhat, diskPlace, bench.CarefulSystem}, {uploadWhat, diskPlace, bench.APISystem},
		{formWhat, diskPlace, bench.APISystem}, {downloadWhat, diskPlace, bench.CopySystem}, {downloadWhat, diskPlace, bench.APISystem},
		{uploadWhat, s3Place, minioSystem}, {uploadWhat, s3Place, bench.APISystem}, {formWhat, s3Place, bench.APISystem},
		{downloadWhat, s3Place, minioSystem}, {downloadWhat, s3Place, bench.APISystem},
		{largeWhat, diskPlace, bench.APISystem}, {burstWhat, s3Place, bench.APISystem},
	} {
		if !hasRow(table, row...) {
			t.Errorf("no row for %v in\n%s", row, table)
		}
	}
	if want := 4 + 3 + 2 + 3 + 2 + 2; len(r.Files) != want {
		t.Errorf("got %d cells, want %d", len(r.Files), want)
	}
	for _, c := range r.Files {
		checkFiles(t, &c)
	}
	if len(r.Goals) != 7 || slices.ContainsFunc(r.Goals, func(g report.Goal) bool { return !g.Measured }) {
		t.Errorf("got the goals %+v", r.Goals)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// checkFiles makes sure that a cell has the figures of what it does.
func checkFiles(t *testing.T, c *fileCell) {
	t.Helper()
	files, size := 2, int64(70001)
	switch c.What {
	case largeWhat:
		size = 2100007
	case burstWhat:
		files, size = 3, 14000
	}
	ok := c.Files == files && c.Bytes == size && c.Seconds > 0 && c.Round == 1
	ok = ok && math.Abs(c.PerSecond*c.Seconds*1e6-float64(files)*float64(size)) < 1
	ok = ok && (c.PeakMB > 5) == (c.System != minioSystem)
	ok = ok && (c.What != largeWhat || (c.GrownMB >= c.GrownUpMB && c.GrownMB >= 0 && c.GrownMB < c.PeakMB))
	if !ok {
		t.Errorf("implausible cell %+v", c)
	}
}

func TestFilesWithoutS3(t *testing.T) {
	t.Setenv(bench.S3Env, "")
	table, r := benchmark(t, filesSmall...)
	if !strings.Contains(table, "NOT MEASURED: files on S3") || !strings.Contains(table, "S3: not measured") {
		t.Errorf("the gap is not loud:\n%s", table)
	}
	for _, g := range r.Goals {
		if g.Measured != (g.Store == diskPlace) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
}

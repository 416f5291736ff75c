package main

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/benchtest"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/report"
)

// filesSmall makes the part with files short. The sizes are multiples of nothing.
var filesSmall = []string{"-rounds", "1", "-only", bench.FilesPart, "-file-size", "70001", "-file-count", "2",
	"-file-large", "2100007", "-file-burst", "3"}

func TestFilesEveryCell(t *testing.T) {
	benchtest.NeedS3(t)
	t.Parallel()
	dir := t.TempDir()
	table, r := benchmark(t, append(slices.Clone(filesSmall), "-dir", dir, "-stores", "postgres")...)
	for _, row := range [][]any{
		{files.UploadWhat, files.DiskPlace, bench.CopySystem}, {files.UploadWhat, files.DiskPlace, bench.CarefulSystem}, {files.UploadWhat, files.DiskPlace, bench.APISystem},
		{files.FormWhat, files.DiskPlace, bench.APISystem}, {files.DownloadWhat, files.DiskPlace, bench.CopySystem}, {files.DownloadWhat, files.DiskPlace, bench.APISystem},
		{files.UploadWhat, files.S3Place, files.MinioSystem}, {files.UploadWhat, files.S3Place, bench.APISystem}, {files.FormWhat, files.S3Place, bench.APISystem},
		{files.DownloadWhat, files.S3Place, files.MinioSystem}, {files.DownloadWhat, files.S3Place, bench.APISystem},
		{files.LargeWhat, files.DiskPlace, bench.APISystem}, {files.BurstWhat, files.S3Place, bench.APISystem},
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
func checkFiles(t *testing.T, c *files.Cell) {
	t.Helper()
	n, size := 2, int64(70001)
	switch c.What {
	case files.LargeWhat:
		size = 2100007
	case files.BurstWhat:
		n, size = 3, 14000
	}
	ok := c.Files == n && c.Bytes == size && c.Seconds > 0 && c.Round == 1
	ok = ok && math.Abs(c.PerSecond*c.Seconds*1e6-float64(n)*float64(size)) < 1
	ok = ok && (c.PeakMB > 5) == (c.System != files.MinioSystem)
	ok = ok && (c.What != files.LargeWhat || (c.GrownMB >= c.GrownUpMB && c.GrownMB >= 0 && c.GrownMB < c.PeakMB))
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
		if g.Measured != (g.Store == files.DiskPlace) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
}

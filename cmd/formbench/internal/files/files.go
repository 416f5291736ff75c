// Package files measures uploads and downloads, on a disk beside io.Copy and on S3 beside
// minio-go, and by how much the memory of the server grows meanwhile.
package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// MinioSystem has no server between the generator and S3.
const MinioSystem = "minio-go"

// The places where files are kept.
const (
	DiskPlace = "disk"
	S3Place   = "S3"
)

// What is done with files.
const (
	UploadWhat   = "upload"
	FormWhat     = "upload as a form" // multipart/form-data
	DownloadWhat = "download"
	LargeWhat    = "large file" // up and down again
	BurstWhat    = "burst"      // uploads at once
)

// A Cell is one row of a table about files, measured once.
type Cell struct {
	What   string `json:"what"`
	Place  string `json:"place"`
	System string `json:"system"`
	Round  int    `json:"round"`
	Figures
}

// Figures are what was measured. Megabytes and gigabytes are powers of ten.
type Figures struct {
	Files        int     `json:"files"`
	Bytes        int64   `json:"bytes"` // of each
	Seconds      float64 `json:"seconds"`
	PerSecond    float64 `json:"megabytesPerSecond"`
	ServerCPU    float64 `json:"serverSecondsPerGigabyte"` // CPU time; 0 without a server of ours
	S3CPU        float64 `json:"s3SecondsPerGigabyte"`     // of the S3 server
	GeneratorCPU float64 `json:"generatorSecondsPerGigabyte"`
	OtherCPU     float64 `json:"otherSecondsPerGigabyte"` // everything else on the machine, the kernel's writing to disk too
	OtherCores   float64 `json:"otherCores"`
	PeakMB       float64 `json:"peakMegabytes"`    // resident memory of our server
	GrownUpMB    float64 `json:"grownUpMegabytes"` // the peak over that before, after uploading
	GrownMB      float64 `json:"grownMegabytes"`   // the same at the end
}

// String names the cell in progress lines.
func (c *Cell) String() string {
	return fmt.Sprintf("round %d, %s, %s, %s", c.Round, c.What, c.Place, c.System)
}

// A Content is what is in a file: a block of random bytes, over and over.
type Content struct {
	block []byte
	Size  int64
	sum   string // SHA-256 in hexadecimal
}

// WriteTo implements [io.WriterTo].
func (c *Content) WriteTo(w io.Writer) (n int64, err error) {
	for n < c.Size {
		m, err := w.Write(c.block[:min(int64(len(c.block)), c.Size-n)])
		if n += int64(m); err != nil {
			return n, err
		}
	}
	return n, nil
}

// A Runner is the part of a run that moves files.
type Runner struct {
	*bench.Bench
	block    []byte
	contents map[int64]*Content // by size
}

// NewRunner fills the block that files are made of.
func NewRunner(b *bench.Bench) (*Runner, error) {
	f := &Runner{Bench: b, block: make([]byte, max(b.FileSize, warmSize)), contents: make(map[int64]*Content)}
	_, err := rand.Read(f.block)
	return f, err
}

// Run measures uploads and downloads. What was measured until one fails is
// returned, too.
func Run(ctx context.Context, b *bench.Bench) (cells []Cell, err error) {
	f, err := NewRunner(b)
	if err != nil {
		return nil, err
	}
	for _, c := range plan(b) {
		if err := f.cell(ctx, &c); err != nil {
			return cells, fmt.Errorf("%s: %w", &c, err)
		}
		cells = append(cells, c)
		_, _ = fmt.Fprintf(b.Log, "%s: %s\n", &c, c.summary())
	}
	return cells, nil
}

// burstSize is how large the files are that go at once.
func burstSize(o *bench.Options) int64 { return max(o.FileSize/burstShare, 1) }

// content returns the content of files of a size.
func (f *Runner) content(size int64) *Content {
	if f.contents[size] == nil {
		c := &Content{block: f.block[:min(size, int64(len(f.block)))], Size: size}
		hash := sha256.New()
		_, _ = c.WriteTo(hash) // a hash takes everything
		c.sum = hex.EncodeToString(hash.Sum(nil))
		f.contents[size] = c
	}
	return f.contents[size]
}

// summary is what the progress line says.
func (c *Cell) summary() string {
	if c.What == LargeWhat || c.What == BurstWhat {
		return fmt.Sprintf("memory grew by %.1f MB at %.0f MB/s", c.GrownMB, c.PerSecond)
	}
	return fmt.Sprintf("%.0f MB/s, CPU s per GB: server %.2f, S3 %.2f, generator %.2f, other %.2f",
		c.PerSecond, c.ServerCPU, c.S3CPU, c.GeneratorCPU, c.OtherCPU)
}

// plan returns the cells in the order they are measured in: what is compared
// is measured one after the other, beginning elsewhere in each round. Memory
// hardly varies and is measured once.
func plan(b *bench.Bench) (list []Cell) {
	for round := range b.Rounds {
		for _, place := range places(b) {
			for _, what := range [][]string{{UploadWhat, FormWhat}, {DownloadWhat}} {
				cells := comparedCells(place, what)
				at := round % len(cells)
				list = slices.Concat(list, cells[at:], cells[:at])
			}
			if round == 0 {
				for _, what := range []string{LargeWhat, BurstWhat} {
					list = append(list, Cell{What: what, Place: place, System: bench.APISystem})
				}
			}
		}
		for i := range list {
			if list[i].Round == 0 {
				list[i].Round = round + 1
			}
		}
	}
	return list
}

// comparedCells returns the cells that are compared with each other. Only the
// API knows forms.
func comparedCells(place string, whats []string) (cells []Cell) {
	systems := []string{bench.CopySystem, bench.CarefulSystem}
	if place == S3Place {
		systems = []string{MinioSystem}
	}
	for _, system := range systems {
		cells = append(cells, Cell{What: whats[0], Place: place, System: system})
	}
	for _, what := range whats {
		cells = append(cells, Cell{What: what, Place: place, System: bench.APISystem})
	}
	return cells
}

// places are those that can be measured here.
func places(b *bench.Bench) []string {
	if b.S3Program == "" {
		return []string{DiskPlace}
	}
	return []string{DiskPlace, S3Place}
}

// Prepare finds out whether there is an S3 server.
func Prepare(b *bench.Bench) {
	if !slices.Contains(b.Only, bench.FilesPart) {
		return
	}
	if b.S3Program = os.Getenv(bench.S3Env); b.S3Program == "" {
		b.Warn("NOT MEASURED: files on S3, since " + bench.S3Env + " does not name the program versitygw")
	}
}

// cell measures one cell, with servers and directories of its own.
func (f *Runner) cell(ctx context.Context, c *Cell) (err error) {
	s, err := f.NewScene(ctx, c)
	defer func() { err = errors.Join(err, s.Close()) }()
	if err != nil {
		return err
	}
	switch c.What {
	case LargeWhat:
		return s.large(ctx, f.FileLarge)
	case BurstWhat:
		return s.burst(ctx, f.FileBurst, burstSize(&f.Options))
	case DownloadWhat:
		return s.downloads(ctx, f.FileCount, f.FileSize)
	}
	return s.uploads(ctx, f.FileCount, f.FileSize)
}

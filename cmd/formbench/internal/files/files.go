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
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

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
	done     []result.Cell      // that are compared with each other
}

// NewRunner fills the block that files are made of.
func NewRunner(b *bench.Bench) (*Runner, error) {
	f := &Runner{Bench: b, block: make([]byte, max(b.FileSize, warmSize)), contents: make(map[int64]*Content)}
	_, err := rand.Read(f.block)
	return f, err
}

// Run measures uploads and downloads.
func Run(ctx context.Context, b *bench.Bench) error {
	f, err := NewRunner(b)
	if err != nil {
		return err
	}
	for _, group := range plan(b) {
		if err := f.group(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

func (f *Runner) group(ctx context.Context, cells []result.Cell) (err error) {
	peer := bench.CopySystem
	if cells[0].Store == bench.S3Place {
		peer = bench.MinioSystem
	}
	defer func() { err = errors.Join(err, f.Compare(peer)) }()
	for i := range cells {
		if err := f.cell(ctx, &cells[i]); err != nil {
			return fmt.Errorf("%s: %w", &cells[i], err)
		}
		f.Done(&cells[i])
	}
	return nil
}

// Done keeps a cell until it is compared.
func (f *Runner) Done(c *result.Cell) { f.done = append(f.done, *c) }

// Compare notes the cells that are done, with how fast each was over how fast the one of another system was.
func (f *Runner) Compare(system string) (err error) {
	base := 0.0
	for i := range f.done {
		if f.done[i].System == system {
			base, _ = f.done[i].Get("MB/s")
		}
	}
	for i := range f.done {
		c := &f.done[i]
		if rate, _ := c.Get("MB/s"); base > 0 && c.System != system {
			c.Add("of-"+system, rate/base)
		}
		err = errors.Join(err, f.Note(c))
	}
	f.done = nil
	return err
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

// plan returns the cells in the order they are measured in: those of a group are
// compared, beginning elsewhere in each round. Memory hardly varies and is measured once.
func plan(b *bench.Bench) (groups [][]result.Cell) {
	for round := range b.Rounds {
		for _, place := range places(b) {
			for _, whats := range [][]string{{bench.UploadWhat, bench.FormWhat}, {bench.DownloadWhat}} {
				groups = append(groups, bench.Rotated(comparedCells(place, whats, round), round))
			}
			if round > 0 {
				continue
			}
			for _, what := range []string{bench.LargeWhat, bench.BurstWhat} {
				groups = append(groups, []result.Cell{newCell(what, place, bench.APISystem, round)})
			}
		}
	}
	return groups
}

func newCell(what, place, system string, round int) result.Cell {
	return result.Cell{Key: result.Key{Part: bench.FilesPart, What: what, Store: place, System: system}, Round: round + 1}
}

// comparedCells returns the cells that are compared with each other. Only the
// API knows forms.
func comparedCells(place string, whats []string, round int) (cells []result.Cell) {
	systems := []string{bench.CopySystem, bench.CarefulSystem}
	if place == bench.S3Place {
		systems = []string{bench.MinioSystem}
	}
	for _, system := range systems {
		cells = append(cells, newCell(whats[0], place, system, round))
	}
	for _, what := range whats {
		cells = append(cells, newCell(what, place, bench.APISystem, round))
	}
	return cells
}

// places are those that can be measured here.
func places(b *bench.Bench) []string {
	if b.S3Program == "" {
		return []string{bench.DiskPlace}
	}
	return []string{bench.DiskPlace, bench.S3Place}
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
func (f *Runner) cell(ctx context.Context, c *result.Cell) (err error) {
	s, err := f.NewScene(ctx, c)
	defer func() { err = errors.Join(err, s.Close()) }()
	if err != nil {
		return err
	}
	switch c.What {
	case bench.LargeWhat:
		return s.large(ctx, f.FileLarge)
	case bench.BurstWhat:
		return s.burst(ctx, f.FileBurst, burstSize(&f.Options))
	case bench.DownloadWhat:
		return s.downloads(ctx, f.FileCount, f.FileSize)
	}
	return s.uploads(ctx, f.FileCount, f.FileSize)
}

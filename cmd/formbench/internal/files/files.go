// Package files measures uploads and downloads, on a disk beside io.Copy and on S3 beside minio-go, and the growth of
// the server's memory.
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
	"path/filepath"
	"slices"
	"syscall"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/s3server"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/formsvc"
)

// A Content is the content of a file: a block of random bytes, repeated.
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

// A Runner measures the parts of a run that transfer files.
type Runner struct {
	*bench.Bench
	block    []byte
	contents map[int64]*Content // by size
	done     []result.Cell      // that are compared with each other
}

// NewRunner creates the block that files consist of.
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

// Compare notes the finished cells, with the rate of each over the rate of another system.
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

// content returns the content of files of a size.
func (f *Runner) content(size int64) *Content {
	if f.contents[size] == nil {
		c := &Content{block: f.block[:min(size, int64(len(f.block)))], Size: size}
		hash := sha256.New()
		_, _ = c.WriteTo(hash) // a hash never fails
		c.sum = hex.EncodeToString(hash.Sum(nil))
		f.contents[size] = c
	}
	return f.contents[size]
}

// plan returns the cells in the order of their measurement. The cells of a group are compared; each round begins with
// another one. Memory hardly varies and is measured once.
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

// comparedCells returns the cells that are compared with each other. Only the API knows forms.
func comparedCells(place string, whats []string, round int) (cells []result.Cell) {
	systems := []string{bench.CopySystem, bench.CarefulSystem}
	if place == bench.S3Place {
		systems = []string{bench.MinioSystem}
	}
	if whats[0] == bench.DownloadWhat {
		systems = systems[:1] // the careful system sends files in the same way
	}
	for _, system := range systems {
		cells = append(cells, newCell(whats[0], place, system, round))
	}
	for _, what := range whats {
		cells = append(cells, newCell(what, place, bench.APISystem, round))
	}
	return cells
}

// places are the places that can be measured here.
func places(b *bench.Bench) []string {
	if b.S3Program == "" {
		return []string{bench.DiskPlace}
	}
	return []string{bench.DiskPlace, bench.S3Place}
}

// Prepare checks whether there is an S3 server.
func Prepare(b *bench.Bench) {
	if !slices.Contains(b.Only, bench.FilesPart) {
		return
	}
	if b.S3Program = os.Getenv(bench.S3Env); b.S3Program == "" {
		b.Warn("NOT MEASURED: files on S3, since " + bench.S3Env + " does not name the program versitygw")
	}
}

// cell measures one cell, with its own servers and directories.
func (f *Runner) cell(ctx context.Context, c *result.Cell) (err error) {
	s, err := f.NewScene(ctx, c)
	defer func() { err = errors.Join(err, s.Close()) }()
	if err != nil {
		return err
	}
	switch c.What {
	case bench.LargeWhat:
		return s.Large(ctx, f.FileLarge, true)
	case bench.BurstWhat:
		return s.burst(ctx, f.FileBurst, max(f.FileSize/burstShare, 1))
	}
	return s.move(ctx, f.FileCount, f.FileSize, c.What == bench.DownloadWhat)
}

// A Scene has the directories and servers of a cell, and where it sends files. Closing it removes all stored files.
type Scene struct {
	*Runner
	cell   *result.Cell
	dir    string
	s3     *s3server.Server // nil on disk
	Server *server.Process  // nil if the generator uses S3 itself
	world  database.World
	stored int // files that the system has acknowledged
	db     *database.Database
	peer   Peer // nil for a system of ours
}

// A Peer is another system that takes files.
type Peer interface {
	// NewMover returns a mover for the peer's server at addr, with a time limit for this many bytes.
	NewMover(ctx context.Context, addr string, bytes int64) (Mover, error)
	// Holds fails unless there are exactly as many files as were acknowledged. The server has ended.
	Holds(ctx context.Context, stored int) error
}

// PeerScene returns a scene with a peer that has its data in dir. The caller starts its server.
func (f *Runner) PeerScene(c *result.Cell, dir string, peer Peer) *Scene {
	return &Scene{Runner: f, cell: c, dir: dir, peer: peer}
}

// NewScene returns a scene. Close it also on failure.
func (f *Runner) NewScene(ctx context.Context, c *result.Cell) (s *Scene, err error) {
	s = &Scene{Runner: f, cell: c, world: database.InventedWorld()}
	if s.dir, err = os.MkdirTemp(f.Dir, "formbench-"); err != nil {
		return s, err
	}
	cfg := server.Config{System: c.System, Files: filepath.Join(s.dir, "files"), MaxFile: max(f.FileSize, f.FileLarge, warmSize)}
	if err := os.Mkdir(cfg.Files, 0o700); err != nil {
		return s, err
	}
	if c.Store == bench.S3Place {
		if s.s3, err = s3server.Start(ctx, f.S3Program, s.dir); err != nil {
			return s, err
		}
		cfg.Files, cfg.Endpoint = "", s.s3.Endpoint
	}
	if c.System == bench.MinioSystem {
		return s, nil
	}
	if c.System == bench.APISystem {
		if err := s.makeDatabase(ctx); err != nil {
			return s, err
		}
		cfg.DSN = s.db.DSN
	}
	cfg.Profile = f.Profile(c)
	s.Server, err = server.Start(ctx, f.Self, cfg, f.Log)
	return s, err
}

// makeDatabase creates a database with a response that gets the files.
func (s *Scene) makeDatabase(ctx context.Context) (err error) {
	if s.db, err = database.New(ctx, bench.SQLiteStore, s.dir); err != nil {
		return err
	}
	account, err := s.db.NewAccount(ctx)
	if err != nil {
		return err
	}
	s.world, err = s.db.WithResponses(ctx, account, 1)
	return err
}

// Close ends the servers and removes all stored files.
func (s *Scene) Close() error {
	if s == nil {
		return nil
	}
	err := s.stopServer()
	if s.s3 != nil {
		s.s3.Stop()
	}
	if s.dir == "" {
		return err
	}
	err = errors.Join(err, os.RemoveAll(s.dir))
	syscall.Sync() // so that the next cell does not wait for this one's writes
	return err
}

func (s *Scene) stopServer() (err error) {
	if s.Server != nil {
		err = s.Server.Stop()
	}
	s.Server = nil
	return err
}

// holds fails unless the API has exactly as many files as were acknowledged. It ends the server.
func (s *Scene) holds(ctx context.Context) error {
	if s.peer != nil {
		return errors.Join(s.stopServer(), s.peer.Holds(ctx, s.stored))
	}
	if s.db == nil {
		return nil
	}
	if err := s.stopServer(); err != nil {
		return err
	}
	return s.db.With(ctx, func(db database.Store, _ *formsvc.Service) error {
		page, err := db.Files(ctx, formsvc.FileQuery{
			AccountID: s.world.Campaign.AccountID, CampaignID: s.world.Campaign.ID, ResponseID: fixture.StoredID(0),
			Page: formsvc.PageQuery{Limit: 1},
		})
		if err == nil && page.Total != int64(s.stored) {
			err = fmt.Errorf("%d files were acknowledged, the database has %d", s.stored, page.Total)
		}
		return err
	})
}

// watched notes the cost of transferring n files of a size.
func (s *Scene) watched(n int, size int64, move func() error) error {
	pids := []int{0, 0}
	if s.Server != nil {
		pids[0] = s.Server.PID
	}
	if s.s3 != nil {
		pids[1] = s.s3.PID
	}
	before, err := proc.ReadTimes(pids...)
	if err != nil {
		return err
	}
	if err := move(); err != nil {
		return err
	}
	after, err := proc.ReadTimes(pids...)
	if err != nil {
		return err
	}
	charge(s.cell, float64(n)*float64(size)/1e9, &before, &after)
	if s.Server == nil {
		return nil
	}
	peak, err := s.peak()
	s.cell.Add("peak-MB", peak)
	return err
}

// charge turns the CPU times around a measurement, of our server and of the S3 server, into figures. Megabytes and
// gigabytes are powers of ten.
func charge(c *result.Cell, gigabytes float64, before, after *proc.Times) {
	seconds, each, generator, other := after.Since(before)
	perGB := seconds / gigabytes
	c.Figures = append(c.Figures, []result.Figure{
		{Unit: "MB/s", Value: gigabytes * 1e3 / seconds},
		{Unit: "CPU-s/GB", Value: (each[0] + each[1]) * perGB},
		{Unit: "server-s/GB", Value: each[0] * perGB},
		{Unit: "S3-s/GB", Value: each[1] * perGB},
		{Unit: "generator-s/GB", Value: generator * perGB},
		{Unit: "other-s/GB", Value: other * perGB}, // includes the kernel's writing to disk
		{Unit: "other-cores", Value: other},
	}...)
}

// peak returns the peak resident memory of our server in MB, or 0 without a server.
func (s *Scene) peak() (float64, error) {
	if s.Server == nil {
		return 0, nil
	}
	return proc.PeakMB(s.Server.PID)
}

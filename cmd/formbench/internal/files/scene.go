package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// A Scene is what a cell needs: directories, servers and where to send
// files. Closing it removes all that was stored.
type Scene struct {
	*Runner
	cell   *result.Cell
	dir    string
	s3     *s3server.Server // nil on disk
	Server *server.Process  // nil where the generator speaks to S3 itself
	world  database.World
	stored int // files that the system has acknowledged
	db     *database.Database
	peer   Peer // nil for a system of ours
}

// A Peer is another system that takes files.
type Peer interface {
	// NewMover returns one for its server at addr that may move as many bytes.
	NewMover(ctx context.Context, addr string, bytes int64) (Mover, error)
	// Holds fails unless as many files are there as were acknowledged. The server has
	// ended.
	Holds(ctx context.Context, stored int) error
}

// PeerScene returns a scene with a peer that has its data in dir. Its server is yet to
// be started.
func (f *Runner) PeerScene(c *result.Cell, dir string, peer Peer) *Scene {
	return &Scene{Runner: f, cell: c, dir: dir, peer: peer}
}

// NewScene returns one that has to be closed also when it fails.
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

// makeDatabase makes one with a response that gets the files.
func (s *Scene) makeDatabase(ctx context.Context) (err error) {
	if s.db, err = database.New(ctx, bench.SQLiteStore, s.dir); err != nil {
		return err
	}
	account, err := s.db.NewAccount(ctx)
	if err != nil {
		return err
	}
	s.world, err = s.db.WithResponses(ctx, account, 0, 1)
	return err
}

// Close ends the servers and removes all that was stored.
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
	syscall.Sync() // so that the next cell does not wait for what this one wrote
	return err
}

func (s *Scene) stopServer() (err error) {
	if s.Server != nil {
		err = s.Server.Stop()
	}
	s.Server = nil
	return err
}

// holds fails unless the API has as many files as were acknowledged. It ends the
// server.
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

// watched notes what it takes to move n files of a size.
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

// charge turns the CPU times around a measurement, of our server and of that of
// S3, into figures. Megabytes and gigabytes are powers of ten.
func charge(c *result.Cell, gigabytes float64, before, after *proc.Times) {
	seconds, each, generator, other := after.Since(before)
	perGB := seconds / gigabytes
	c.Figures = append(c.Figures, []result.Figure{
		{Unit: "MB/s", Value: gigabytes * 1e3 / seconds},
		{Unit: "CPU-s/GB", Value: (each[0] + each[1]) * perGB},
		{Unit: "server-s/GB", Value: each[0] * perGB},
		{Unit: "S3-s/GB", Value: each[1] * perGB},
		{Unit: "generator-s/GB", Value: generator * perGB},
		{Unit: "other-s/GB", Value: other * perGB}, // the kernel's writing to disk, too
		{Unit: "other-cores", Value: other},
	}...)
}

// peak returns the most memory that our server ever had resident, in MB, or 0
// without a server.
func (s *Scene) peak() (float64, error) {
	if s.Server == nil {
		return 0, nil
	}
	return proc.PeakMB(s.Server.PID)
}

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/s3server"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/formsvc"
)

// A Scene is what a cell needs: directories, servers and where to send
// files. Closing it removes all that was stored.
type Scene struct {
	*Runner
	cell   *Cell
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
func (f *Runner) PeerScene(c *Cell, dir string, peer Peer) *Scene {
	return &Scene{Runner: f, cell: c, dir: dir, peer: peer}
}

// NewScene returns one that has to be closed also when it fails.
func (f *Runner) NewScene(ctx context.Context, c *Cell) (s *Scene, err error) {
	s = &Scene{Runner: f, cell: c, world: database.InventedWorld()}
	if s.dir, err = os.MkdirTemp(f.Dir, "formbench-"); err != nil {
		return s, err
	}
	cfg := server.Config{System: c.System, Files: filepath.Join(s.dir, "files"), MaxFile: max(f.FileSize, f.FileLarge, warmSize)}
	if err := os.Mkdir(cfg.Files, 0o700); err != nil {
		return s, err
	}
	if c.Place == S3Place {
		if s.s3, err = s3server.Start(ctx, f.S3Program, s.dir); err != nil {
			return s, err
		}
		cfg.Files, cfg.Endpoint = "", s.s3.Endpoint
	}
	if c.System == MinioSystem {
		return s, nil
	}
	if c.System == bench.APISystem {
		if err := s.makeDatabase(ctx); err != nil {
			return s, err
		}
		cfg.DSN = s.db.DSN
	}
	if f.Profiles != "" {
		cfg.Profile = filepath.Join(f.Profiles, c.Profile())
	}
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

// Profile names the file of the cell's CPU profile.
func (c *Cell) Profile() string {
	name := fmt.Sprintf("files-%s-%s-%s-round%d.pprof", c.What, c.Place, c.System, c.Round)
	return strings.NewReplacer(", ", "-", " ", "-").Replace(name)
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
	settleDisk() // so that the next cell does not wait for what this one wrote
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
	before, err := proc.ReadTimes(pids)
	if err != nil {
		return err
	}
	if err := move(); err != nil {
		return err
	}
	after, err := proc.ReadTimes(pids)
	if err != nil {
		return err
	}
	s.cell.Files, s.cell.Bytes = n, size
	s.cell.charge(before, after)
	s.cell.PeakMB, err = s.peak()
	return err
}

// charge turns the CPU times around a measurement, of our server and of that of
// S3, into figures.
func (f *Figures) charge(before, after proc.Times) {
	gigabytes := float64(f.Files) * float64(f.Bytes) / 1e9
	f.Seconds = after.At.Sub(before.At).Seconds()
	if gigabytes <= 0 || f.Seconds <= 0 {
		return
	}
	server, s3 := after.Each[0]-before.Each[0], after.Each[1]-before.Each[1]
	generator := after.Self - before.Self
	other := after.Machine - before.Machine - server - s3 - generator
	f.PerSecond = gigabytes * 1e3 / f.Seconds
	f.ServerCPU, f.S3CPU = server.Seconds()/gigabytes, s3.Seconds()/gigabytes
	f.GeneratorCPU, f.OtherCPU = generator.Seconds()/gigabytes, other.Seconds()/gigabytes
	f.OtherCores = other.Seconds() / f.Seconds
}

// peak returns the most memory that our server ever had resident, in MB, or 0
// without a server.
func (s *Scene) peak() (float64, error) {
	if s.Server == nil {
		return 0, nil
	}
	peak, err := proc.PeakMemory(s.Server.PID)
	return float64(peak) / 1e6, err
}

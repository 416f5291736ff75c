package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// A ReadPlan has cells that are compared with each other.
type ReadPlan struct {
	What    string
	Conns   int
	Systems []string
}

// ReadPlans are the plans of the reads.
func ReadPlans() []ReadPlan {
	return []ReadPlan{
		{bench.GetWhat, 8, []string{bench.APISystem, bench.PocketSystem, bench.TokenSystem}},
		{bench.GetWhat, 32, []string{bench.APISystem, bench.PocketSystem, bench.TokenSystem}},
		{bench.ListWhat, 8, []string{bench.APISystem, bench.PocketSystem, bench.CreatedSystem}},
		{bench.PageWhat, 1, []string{bench.APISystem, bench.OffsetSystem, bench.PocketSystem, bench.CreatedSystem}},
	}
}

// reads measures single responses and pages of a large campaign.
func (p *runner) reads(ctx context.Context, round int) error {
	if err := p.fill(ctx); err != nil {
		return err
	}
	for _, plan := range ReadPlans() {
		for _, c := range requests.Plan(bench.PeerReadPart, bench.SQLiteStore, []string{plan.What}, []int{plan.Conns}, []int{p.PeerFill}, plan.Systems, round) {
			if err := p.readCell(ctx, &c); err != nil {
				return fmt.Errorf("%s: %w", &c, err)
			}
		}
	}
	return nil
}

// startFull starts the system of a cell with its filled database.
func (p *runner) startFull(ctx context.Context, c *result.Cell) (*server.Process, error) {
	if c.System == bench.APISystem || c.System == bench.OffsetSystem {
		return requests.StartOurs(ctx, p.Bench, c, server.Config{DSN: p.ours.DSN})
	}
	if err := p.freshLog(); err != nil {
		return nil, err
	}
	return p.startPocket(ctx, c, p.full)
}

// enough is the number of requests that a cell with slow requests should have.
const enough = 4

func (p *runner) readCell(ctx context.Context, c *result.Cell) error {
	start := func(ctx context.Context) (*server.Process, error) { return p.startFull(ctx, c) }
	return requests.Read(ctx, p.Bench, c, start, func(srv *server.Process) (loadgen.Workload, time.Duration, error) {
		work, err := p.readWork(ctx, c, srv)
		if err != nil {
			return work, 0, err
		}
		begin := time.Now()
		err = checkRead(ctx, c, srv.Addr, &work)
		// Concurrent requests share the processors.
		slowest := time.Since(begin) * time.Duration(max(1, c.Conns/runtime.NumCPU()))
		return work, max(p.Duration, enough*slowest), err
	})
}

// far is the number of responses before the far page, of n.
func far(n int) int { return n / 2 / bench.PageSize * bench.PageSize }

// readWork returns the requests of a cell.
func (p *runner) readWork(ctx context.Context, c *result.Cell, srv *server.Process) (loadgen.Workload, error) {
	if c.System == bench.APISystem || c.System == bench.OffsetSystem {
		return p.readOurs(ctx, c, srv.Addr)
	}
	sort := "-@rowid"
	if c.System == bench.CreatedSystem {
		sort = "-created"
	}
	switch c.What {
	case bench.GetWhat:
		token := ""
		if c.System == bench.TokenSystem {
			token = srv.Token
		}
		return getPocket(c.Size, token), nil
	case bench.ListWhat:
		return listPocket(1, sort), nil
	}
	return listPocket(far(c.Size)/bench.PageSize+1, sort), nil
}

func (p *runner) readOurs(ctx context.Context, c *result.Cell, addr string) (loadgen.Workload, error) {
	load := loadgen.Workload{Status: http.StatusOK}
	switch {
	case c.What == bench.GetWhat:
		return p.world.Gets(c.Size), nil
	case c.What == bench.ListWhat:
		return p.world.List(), nil
	case c.System == bench.OffsetSystem:
		path := p.world.ListPath() + "?limit=" + strconv.Itoa(bench.PageSize) + "&offset=" + strconv.Itoa(far(c.Size))
		load.Requests = [][]byte{p.world.Request(http.MethodGet, path, nil)}
		return load, nil
	}
	cursor, err := p.world.CursorAfter(ctx, addr, far(c.Size)-1)
	load.Requests = [][]byte{p.world.Page(cursor)}
	return load, err
}

// checkRead sends the first request and fails unless its response has the stored data.
func checkRead(ctx context.Context, c *result.Cell, addr string, work *loadgen.Workload) error {
	body, err := loadgen.Ask(ctx, addr, work.Requests[0], work.Status)
	if err != nil {
		return err
	}
	type record struct {
		Reference string `json:"reference"`
	}
	var got struct {
		record
		Items      []record `json:"items"`
		Total      int      `json:"total"`
		TotalItems int      `json:"totalItems"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	if c.What == bench.GetWhat {
		if want := fixture.StoredReference(0); got.Reference != want {
			return fmt.Errorf("answered the response %q, want %q", got.Reference, want)
		}
		return nil
	}
	newest := c.Size - 1
	if c.What == bench.PageWhat {
		newest -= far(c.Size)
	}
	if len(got.Items) != bench.PageSize || got.Total+got.TotalItems != c.Size || got.Items[0].Reference != fixture.StoredReference(newest) {
		return fmt.Errorf("answered %d of %d responses, the first %+v, want %d of %d and %q",
			len(got.Items), got.Total+got.TotalItems, got.Items[:min(1, len(got.Items))], bench.PageSize, c.Size, fixture.StoredReference(newest))
	}
	return nil
}

// uploads measures a large file: with the API as it is and as a form, and with PocketBase as a form, which is all that
// it accepts.
func (p *runner) uploads(ctx context.Context, round int) error {
	f, err := files.NewRunner(p.Bench)
	if err != nil {
		return err
	}
	cells := []result.Key{{What: bench.UploadWhat, System: bench.APISystem}, {What: bench.FormWhat, System: bench.APISystem}, {What: bench.FormWhat, System: bench.PocketSystem}}
	for _, key := range bench.Rotated(cells, round) {
		key.Part, key.Store = bench.PeerFilesPart, bench.DiskPlace
		c := result.Cell{Key: key, Round: round + 1}
		if err := p.uploadCell(ctx, f, &c); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
		f.Done(&c)
	}
	return f.Compare(bench.PocketSystem)
}

func (p *runner) uploadCell(ctx context.Context, f *files.Runner, c *result.Cell) (err error) {
	var s *files.Scene
	if c.System == bench.PocketSystem {
		s, err = p.pocketFiles(ctx, f, c)
	} else {
		s, err = f.NewScene(ctx, c)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err != nil {
		return err
	}
	return s.Large(ctx, f.FileLarge, false)
}

// pocketFiles returns a scene with PocketBase. Close it unless it is nil, also on failure.
func (p *runner) pocketFiles(ctx context.Context, f *files.Runner, c *result.Cell) (*files.Scene, error) {
	peer, err := p.newPocket(ctx)
	if err != nil {
		return nil, err
	}
	s := f.PeerScene(c, peer.dir, &pocketFileScene{peer})
	s.Server, err = p.startPocket(ctx, c, peer.dir)
	return s, err
}

// A pocketFileScene is a directory of PocketBase that gets files.
type pocketFileScene struct{ *pocketScene }

// Holds fails unless there are exactly as many files as were acknowledged, as records and in the directory.
func (s *pocketFileScene) Holds(ctx context.Context, stored int) error {
	if err := s.holds(ctx, stored, pocketbase.Files); err != nil {
		return err
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(s.dir, "storage"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && filepath.Ext(path) != ".attrs" { // PocketBase writes one beside each file
			files++
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it is created for the first file
	}
	if err == nil && files != stored {
		err = fmt.Errorf("PocketBase acknowledged %d files and has %d", stored, files)
	}
	return err
}

// A pocketCourier is a client of PocketBase.
type pocketCourier struct{ *files.Conn }

// NewMover implements files.Peer.
func (s *pocketFileScene) NewMover(ctx context.Context, addr string, bytes int64) (files.Mover, error) {
	conn, err := files.Dial(ctx, addr, bytes)
	if err != nil {
		return nil, err
	}
	return &pocketCourier{conn}, nil
}

// Upload returns the path of the file.
func (c *pocketCourier) Upload(_ context.Context, what *files.Content) (string, error) {
	body, err := c.Post(recordsPath(pocketbase.Files), "", true, what, http.StatusOK)
	if err != nil {
		return "", err
	}
	var got struct{ ID, File string }
	if err := json.Unmarshal(body, &got); err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	if got.ID == "" || got.File == "" {
		return "", fmt.Errorf("upload: answered %.300s", body)
	}
	return got.ID + "/" + got.File, nil
}

func (c *pocketCourier) Download(_ context.Context, id string, w io.Writer) (int64, error) {
	return c.Fetch(pocketRequest(http.MethodGet, "/api/files/"+pocketbase.Files+"/"+id, "", nil), w)
}

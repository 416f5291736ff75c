package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// A ReadPlan is cells that are compared with each other.
type ReadPlan struct {
	What    string
	Conns   int
	Systems []string
}

// ReadPlans say what is read.
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

// enough is how many requests a cell should have that has slow ones.
const enough = 4

func (p *runner) readCell(ctx context.Context, c *result.Cell) (err error) {
	srv, err := p.startFull(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	work, err := p.readWork(ctx, c, srv)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := checkRead(ctx, c, srv.Addr, &work); err != nil {
		return err
	}
	// Requests that run at once share the processors.
	slowest := time.Since(begin) * time.Duration(max(1, c.Conns/runtime.NumCPU()))
	l := &loadgen.Load{Workload: work, Addr: srv.Addr, Conns: c.Conns}
	m, err := requests.Load(ctx, l, srv.PID, p.Warmup, max(p.Duration, enough*slowest))
	if err != nil {
		return err
	}
	m.Figures(c)
	return p.Note(c)
}

// far is how many of n responses come before the far page.
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

// checkRead sends the first request and fails unless it is answered with what was
// stored.
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

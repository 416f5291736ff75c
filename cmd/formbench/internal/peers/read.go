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
		{requests.GetWhat, 8, []string{bench.APISystem, PocketSystem, TokenSystem}},
		{requests.GetWhat, 32, []string{bench.APISystem, PocketSystem, TokenSystem}},
		{requests.ListWhat, 8, []string{bench.APISystem, PocketSystem, createdSystem}},
		{pageWhat, 1, []string{bench.APISystem, offsetSystem, PocketSystem, createdSystem}},
	}
}

// reads measures single responses and pages of a large campaign.
func (p *runner) reads(ctx context.Context, round int) error {
	if err := p.fill(ctx); err != nil {
		return err
	}
	for _, plan := range ReadPlans() {
		for _, system := range bench.Rotated(plan.Systems, round) {
			c := requests.Cell{What: plan.What, Store: bench.SQLiteStore, System: system, Conns: plan.Conns, Responses: p.PeerFill, Round: round + 1}
			if err := p.readCell(ctx, &c); err != nil {
				return fmt.Errorf("%s: %w", &c, err)
			}
		}
	}
	return nil
}

// startFull starts the system of a cell with its filled database.
func (p *runner) startFull(ctx context.Context, c *requests.Cell) (*server.Process, error) {
	if c.System == bench.APISystem || c.System == offsetSystem {
		return p.startOurs(ctx, c, p.ours.DSN)
	}
	if err := p.freshLog(); err != nil {
		return nil, err
	}
	return p.startPocket(ctx, c, p.full)
}

// enough is how many requests a cell should have that has slow ones.
const enough = 4

func (p *runner) readCell(ctx context.Context, c *requests.Cell) (err error) {
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
	if _, err := c.Load(ctx, l, srv.PID, p.Warmup, max(p.Duration, enough*slowest)); err != nil {
		return err
	}
	p.note(c)
	return nil
}

// far is how many of n responses come before the far page.
func far(n int) int { return n / 2 / bench.PageSize * bench.PageSize }

// readWork returns the requests of a cell.
func (p *runner) readWork(ctx context.Context, c *requests.Cell, srv *server.Process) (loadgen.Workload, error) {
	if c.System == bench.APISystem || c.System == offsetSystem {
		return p.readOurs(ctx, c, srv.Addr)
	}
	sort := "-@rowid"
	if c.System == createdSystem {
		sort = "-created"
	}
	switch c.What {
	case requests.GetWhat:
		token := ""
		if c.System == TokenSystem {
			token = srv.Token
		}
		return getPocket(c.Responses, token), nil
	case requests.ListWhat:
		return listPocket(1, sort), nil
	}
	return listPocket(far(c.Responses)/bench.PageSize+1, sort), nil
}

func (p *runner) readOurs(ctx context.Context, c *requests.Cell, addr string) (loadgen.Workload, error) {
	load := loadgen.Workload{Status: http.StatusOK}
	switch {
	case c.What == requests.GetWhat:
		return p.world.Gets(c.Responses), nil
	case c.What == requests.ListWhat:
		return p.world.List(), nil
	case c.System == offsetSystem:
		path := p.world.ListPath() + "?limit=" + strconv.Itoa(bench.PageSize) + "&offset=" + strconv.Itoa(far(c.Responses))
		load.Requests = [][]byte{p.world.Request(http.MethodGet, path, nil)}
		return load, nil
	}
	cursor, err := p.world.CursorAfter(ctx, addr, far(c.Responses)-1)
	load.Requests = [][]byte{p.world.Page(cursor)}
	return load, err
}

// checkRead sends the first request and fails unless it is answered with what was
// stored.
func checkRead(ctx context.Context, c *requests.Cell, addr string, work *loadgen.Workload) error {
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
	if c.What == requests.GetWhat {
		if want := fixture.StoredReference(0); got.Reference != want {
			return fmt.Errorf("answered the response %q, want %q", got.Reference, want)
		}
		return nil
	}
	newest := c.Responses - 1
	if c.What == pageWhat {
		newest -= far(c.Responses)
	}
	if len(got.Items) != bench.PageSize || got.Total+got.TotalItems != c.Responses || got.Items[0].Reference != fixture.StoredReference(newest) {
		return fmt.Errorf("answered %d of %d responses, the first %+v, want %d of %d and %q",
			len(got.Items), got.Total+got.TotalItems, got.Items[:min(1, len(got.Items))], bench.PageSize, c.Responses, fixture.StoredReference(newest))
	}
	return nil
}

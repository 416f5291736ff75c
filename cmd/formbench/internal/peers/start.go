package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// idleWait is after how long a process that does nothing is looked at.
const idleWait = time.Second

// starts measures how soon a system answers, and its memory at rest.
func (p *runner) starts(ctx context.Context, round int) error {
	if err := p.fill(ctx); err != nil {
		return err
	}
	systems := []string{bench.APISystem, bench.PocketSystem}
	for _, c := range requests.Plan(bench.PeerStartPart, bench.SQLiteStore, []string{""}, []int{0}, []int{p.PeerFill}, systems, round) {
		if err := p.startCell(ctx, &c); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

func (p *runner) startCell(ctx context.Context, c *result.Cell) (err error) {
	work := p.world.Gets(c.Size)
	if c.System == bench.PocketSystem {
		work = getPocket(c.Size, "")
	}
	srv, err := p.startFull(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	if _, err := loadgen.Ask(ctx, srv.Addr, work.Requests[0], work.Status); err != nil {
		return err
	}
	c.Add("ready-ms", loadgen.Milliseconds(time.Since(srv.Begin)))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleWait):
	}
	idle, _, err := proc.MemoryMB(srv.PID)
	if err != nil {
		return err
	}
	c.Add("idle-MB", idle)
	return p.Note(c)
}

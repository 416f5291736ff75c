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
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// A StartCell is one start of a system with a filled database.
type StartCell struct {
	System    string  `json:"system"`
	Responses int     `json:"responses"`
	Round     int     `json:"round"`
	Ready     float64 `json:"readyMilliseconds"` // from the start of the process to the first answer of 200
	IdleMB    float64 `json:"idleMegabytes"`     // resident memory, a little later
}

// idleWait is after how long a process that does nothing is looked at.
const idleWait = time.Second

// starts measures how soon a system answers, and its memory at rest.
func (p *runner) starts(ctx context.Context, round int) error {
	if err := p.fill(ctx); err != nil {
		return err
	}
	for _, system := range bench.Rotated([]string{bench.APISystem, PocketSystem}, round) {
		c := StartCell{System: system, Responses: p.PeerFill, Round: round + 1}
		if err := p.startCell(ctx, &c); err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		p.result.Starts = append(p.result.Starts, c)
		_, _ = fmt.Fprintf(p.Log, "round %d, start, %s: ready after %.1f ms, %.1f MB\n", c.Round, system, c.Ready, c.IdleMB)
	}
	return nil
}

func (p *runner) startCell(ctx context.Context, c *StartCell) (err error) {
	work := p.world.Gets(c.Responses)
	if c.System == PocketSystem {
		work = getPocket(c.Responses, "")
	}
	srv, err := p.startFull(ctx, &requests.Cell{What: requests.GetWhat, Store: bench.SQLiteStore, System: c.System, Responses: c.Responses, Round: c.Round})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	if _, err := loadgen.Ask(ctx, srv.Addr, work.Requests[0], work.Status); err != nil {
		return err
	}
	c.Ready = stats.Milliseconds(time.Since(srv.Begin))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleWait):
	}
	c.IdleMB, err = proc.ResidentMB(srv.PID)
	return err
}

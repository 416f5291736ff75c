package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// A contender is a system with an empty database of its own.
type contender struct {
	start   func(ctx context.Context) (*server.Process, error)
	creates func(token string) (loadgen.Workload, error)
	holds   func(ctx context.Context, answered int) error // fails unless everything is there that was acknowledged
	drop    func() error
}

// contender returns that of a cell.
func (p *runner) contender(ctx context.Context, c *requests.Cell) (*contender, error) {
	switch c.System {
	case bench.CeilingSystem:
		w := database.InventedWorld()
		return &contender{
			start:   func(ctx context.Context) (*server.Process, error) { return p.startOurs(ctx, c, "") },
			creates: func(string) (loadgen.Workload, error) { return w.Creates() },
			holds:   func(context.Context, int) error { return nil },
			drop:    func() error { return nil },
		}, nil
	case bench.APISystem:
		return p.ourContender(ctx, c)
	case bench.SingleSystem:
		return p.singleContender(ctx, c)
	}
	return p.pocketContender(ctx, c)
}

// ourContender has a webhook, so that each response is a delivery too.
func (p *runner) ourContender(ctx context.Context, c *requests.Cell) (_ *contender, err error) {
	db, err := database.New(ctx, c.Store, p.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Drop())
		}
	}()
	w, err := db.NewAccount(ctx)
	if err != nil {
		return nil, err
	}
	if w, err = db.WithWebhook(ctx, w); err != nil {
		return nil, err
	}
	return &contender{
		start:   func(ctx context.Context) (*server.Process, error) { return p.startOurs(ctx, c, db.DSN) },
		creates: func(string) (loadgen.Workload, error) { return w.Creates() },
		holds:   func(ctx context.Context, answered int) error { return db.Holds(ctx, w, answered) },
		drop:    db.Drop,
	}, nil
}

func (p *runner) pocketContender(ctx context.Context, c *requests.Cell) (*contender, error) {
	s, err := p.newPocket(ctx)
	if err != nil {
		return nil, err
	}
	kept := []string{pocketbase.Responses}
	create := createPocket
	switch c.System {
	case TokenSystem:
		kept[0] = pocketbase.Private
	case BatchSystem:
		kept, create = []string{pocketbase.Responses, pocketbase.Events, pocketbase.Deliveries}, batchPocket
	}
	return &contender{
		start: func(ctx context.Context) (*server.Process, error) { return p.startPocket(ctx, c, s.dir) },
		creates: func(token string) (loadgen.Workload, error) {
			if c.System != TokenSystem {
				token = ""
			}
			return create(ctx, kept[0], token)
		},
		holds: func(ctx context.Context, answered int) error { return s.holds(ctx, answered, kept...) },
		drop:  s.drop,
	}, nil
}

// startOurs starts this program for a cell.
func (p *runner) startOurs(ctx context.Context, c *requests.Cell, dsn string) (*server.Process, error) {
	system, _, _ := strings.Cut(c.System, ",") // what comes after it is asked of the same server
	cfg := server.Config{System: system, DSN: dsn, Responses: max(c.Responses, bench.MinFill), Profile: p.profile(c)}
	return server.Start(ctx, p.Self, cfg, p.Log)
}

// startPocket starts PocketBase for a cell.
func (p *runner) startPocket(ctx context.Context, c *requests.Cell, dir string) (*server.Process, error) {
	cfg := pocketbase.Config{Dir: dir, Full: c.System == FullSystem || c.System == BatchSystem, Profile: p.profile(c)}
	return server.StartProgram(ctx, cfg, p.Log, p.PeerProgram, pocketbase.Command)
}

// profile names the file of the cell's CPU profile, if there is to be one.
func (p *runner) profile(c *requests.Cell) string {
	if p.Profiles == "" {
		return ""
	}
	name := fmt.Sprintf("peers-%s-%s-%s-%d-round%d.pprof", c.What, c.Store, c.System, c.Conns, c.Round)
	return filepath.Join(p.Profiles, strings.NewReplacer(", ", "-", " ", "-").Replace(name))
}

// A pocketScene is a directory of PocketBase.
type pocketScene struct{ dir string }

func (s *pocketScene) drop() error { return os.RemoveAll(s.dir) }

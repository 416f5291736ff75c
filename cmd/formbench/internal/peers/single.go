package peers

import (
	"context"
	"errors"
	"fmt"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// singleContender has the tables of the handler.
func (p *runner) singleContender(ctx context.Context, c *requests.Cell) (*contender, error) {
	db, err := database.New(ctx, bench.PostgresStore, p.Dir)
	if err != nil {
		return nil, err
	}
	if err := database.OnServer(ctx, db.DSN, server.SingleSchema); err != nil {
		return nil, errors.Join(err, db.Drop())
	}
	w := database.InventedWorld()
	return &contender{
		start:   func(ctx context.Context) (*server.Process, error) { return p.startOurs(ctx, c, db.DSN) },
		creates: func(string) (loadgen.Workload, error) { return w.Creates() },
		holds: func(ctx context.Context, answered int) error {
			return singleHolds(ctx, db.DSN, answered, "single_responses", "single_events", "single_deliveries")
		},
		drop: db.Drop,
	}, nil
}

// singleHolds fails unless each of the tables has as many rows.
func singleHolds(ctx context.Context, dsn string, answered int, tables ...string) error {
	for _, table := range tables {
		n, err := database.ServerCount(ctx, dsn, "SELECT count(*) FROM "+table)
		if err != nil {
			return err
		}
		if n != int64(answered) {
			return fmt.Errorf("%d were acknowledged, %s has %d", answered, table, n)
		}
	}
	return nil
}

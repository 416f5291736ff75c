package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
)

// singleContender has the tables of the handler.
func (p *peerBench) singleContender(ctx context.Context, c *cell) (*contender, error) {
	db, err := newDatabase(ctx, bench.PostgresStore, p.Dir)
	if err != nil {
		return nil, err
	}
	if err := onServer(ctx, db.dsn, singleSchema); err != nil {
		return nil, errors.Join(err, db.drop())
	}
	w := inventedWorld()
	return &contender{
		start:   func(ctx context.Context) (*server, error) { return p.startOurs(ctx, c, db.dsn) },
		creates: func(string) (loadgen.Workload, error) { return w.creates() },
		holds: func(ctx context.Context, answered int) error {
			return singleHolds(ctx, db.dsn, answered, "single_responses", "single_events", "single_deliveries")
		},
		drop: db.drop,
	}, nil
}

// singleHolds fails unless each of the tables has as many rows.
func singleHolds(ctx context.Context, dsn string, answered int, tables ...string) error {
	for _, table := range tables {
		n, err := serverCount(ctx, dsn, "SELECT count(*) FROM "+table)
		if err != nil {
			return err
		}
		if n != int64(answered) {
			return fmt.Errorf("%d were acknowledged, %s has %d", answered, table, n)
		}
	}
	return nil
}

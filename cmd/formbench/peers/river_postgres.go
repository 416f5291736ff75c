package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// poolConns is enough for the callers and the workers.
const poolConns = 48

// A postgresDatabase is River's database on Postgres.
type postgresDatabase struct{ pool *pgxpool.Pool }

func openPostgres(ctx context.Context, dsn string) (*postgresDatabase, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the database is not valid") // the error may contain a password
	}
	cfg.MaxConns = poolConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &postgresDatabase{pool}, nil
}

func (d *postgresDatabase) driver() riverdriver.Driver[pgx.Tx] { return riverpgxv5.New(d.pool) }

func (d *postgresDatabase) within(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, d.pool, do)
}

func (d *postgresDatabase) completed(ctx context.Context) (n int, err error) {
	err = d.pool.QueryRow(ctx, completedJobs).Scan(&n)
	return n, err
}

func (d *postgresDatabase) close() error {
	d.pool.Close()
	return nil
}

package database

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// NewPostgres makes a database of its own on the server, so that what the server
// counts by database is of one cell.
func NewPostgres(ctx context.Context) (*Database, error) {
	server := os.Getenv(bench.PostgresEnv)
	dsn, err := url.Parse(server)
	if err != nil {
		return nil, errors.New(bench.PostgresEnv + " is not a URL") // it may have a password
	}
	name := "formbench_" + strings.ToLower(rand.Text())
	if err := OnServer(ctx, server, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	dsn.Path = "/" + name
	return &Database{
		DSN: dsn.String(),
		Drop: func() error {
			return OnServer(context.WithoutCancel(ctx), server, "DROP DATABASE "+name+" WITH (FORCE)")
		},
	}, nil
}

// Use opens the database for as long as do runs, without a store.
func (d *Database) Use(do func(*sql.DB) error) (err error) {
	driver, dsn := "pgx", d.DSN
	if path, ok := strings.CutPrefix(d.DSN, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}

// ServerCount returns a number of the Postgres server.
func ServerCount(ctx context.Context, dsn, query string, args ...any) (n int64, err error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

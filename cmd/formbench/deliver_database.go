package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// newPostgres makes a database of its own on the server, so that what the server
// counts by database is of one cell.
func newPostgres(ctx context.Context) (*database, error) {
	server := os.Getenv(postgresEnv)
	dsn, err := url.Parse(server)
	if err != nil {
		return nil, errors.New(postgresEnv + " is not a URL") // it may have a password
	}
	name := "formbench_" + strings.ToLower(rand.Text())
	if err := onServer(ctx, server, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	dsn.Path = "/" + name
	return &database{
		dsn: dsn.String(),
		drop: func() error {
			return onServer(context.WithoutCancel(ctx), server, "DROP DATABASE "+name+" WITH (FORCE)")
		},
	}, nil
}

// use opens the database for as long as do runs, without a store.
func (d *database) use(do func(*sql.DB) error) (err error) {
	driver, dsn := "pgx", d.dsn
	if path, ok := strings.CutPrefix(d.dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}

// countDelivered returns how many deliveries to the webhooks are delivered and have
// an attempt that says so.
func countDelivered(ctx context.Context, d *database, hooks []formsvc.ID) (n int, err error) {
	list := make([]string, len(hooks))
	for i, id := range hooks {
		list[i] = "'" + string(id) + "'"
	}
	err = d.use(func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT count(*) FROM formsvc_deliveries d WHERE state = 1 AND webhook_id IN ("+
			strings.Join(list, ", ")+") AND EXISTS (SELECT 1 FROM formsvc_attempts a WHERE a.delivery_id = d.id "+
			"AND a.number = d.attempts AND a.error = '')").Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count what was delivered: %w", err)
	}
	return n, nil
}

// countWaiting returns how many deliveries to a webhook wait.
func countWaiting(ctx context.Context, d *database, hook formsvc.ID) (n int, err error) {
	err = d.use(func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT count(*) FROM formsvc_deliveries WHERE state = 0 AND webhook_id = '"+
			string(hook)+"'").Scan(&n)
	})
	return n, err
}

// fillStatement stores deliveries: webhook, number of the first, how many, due
// time of the first.
func fillStatement(d *database) string {
	const columns = `INSERT INTO formsvc_deliveries
		(webhook_id, id, event_id, event_type, due_at, lease, created_at, updated_at, size, kind, state, attempts) `
	if strings.HasPrefix(d.dsn, "sqlite:") {
		return `WITH RECURSIVE n (i) AS (SELECT ?2 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2 + ?3) ` + columns +
			`SELECT ?1, printf('%08x-0000-7000-8000-000000000000', i), printf('%08x-0000-7000-8000-000000000000', i),
			1, ?4 + i, 0, ?4, 0, 800, 0, 0, 0 FROM n`
	}
	return columns + `SELECT $1::uuid, (lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000')::uuid,
		(lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000')::uuid,
		1, $4::bigint + i, 0, $4::bigint, 0, 800, 0, 0, 0 FROM generate_series($2::bigint, $2::bigint + $3::bigint - 1) i`
}

// fillDeliveries stores n deliveries of a webhook that are due since a while.
func fillDeliveries(ctx context.Context, d *database, db *sql.DB, hook formsvc.ID, first, n int, due time.Time) error {
	_, err := db.ExecContext(ctx, fillStatement(d), string(hook), first, n, due.UnixMicro())
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return nil
}

// serverCount returns a number of the Postgres server.
func serverCount(ctx context.Context, dsn, query string, args ...any) (n int64, err error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	_ "modernc.org/sqlite" // registers the driver "sqlite" with database/sql
)

// A sqliteDatabase is River's database in an SQLite file. It is as durable as the service's: a write-ahead log that is
// synced at every commit.
type sqliteDatabase struct{ db *sql.DB }

func openSQLite(ctx context.Context, path string) (*sqliteDatabase, error) {
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	dsn.RawQuery = url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}.Encode()
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // as its driver recommends: with more, commits fail because the database is locked
	var journal, synchronous string
	err = errors.Join(
		db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal),
		db.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous),
	)
	if err == nil && (journal != "wal" || synchronous != "2") {
		err = fmt.Errorf("journal_mode is %s and synchronous %s", journal, synchronous)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open SQLite: %w", err), db.Close())
	}
	return &sqliteDatabase{db}, nil
}

func (d *sqliteDatabase) driver() riverdriver.Driver[*sql.Tx] { return riversqlite.New(d.db) }

func (d *sqliteDatabase) within(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (d *sqliteDatabase) completed(ctx context.Context) (n int, err error) {
	err = d.db.QueryRowContext(ctx, completedJobs).Scan(&n)
	return n, err
}

func (d *sqliteDatabase) close() error { return d.db.Close() }

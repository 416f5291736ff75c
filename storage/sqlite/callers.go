package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// DSN returns the data source name with which to open a database file for your own tables
// and for [OpenDB], with the driver "sqlite" of modernc.org/sqlite:
//
//	db, err := sql.Open("sqlite", sqlite.DSN("app.db"))
//
// Its connections wait up to 5 seconds for another writer, use a write-ahead log and flush
// it at each commit, enforce foreign keys and overwrite deleted data. Transactions acquire
// the write lock when they begin, because one that reads first may not get it later.
func DSN(path string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), OmitHost: !filepath.IsAbs(path)}
	u.RawQuery = url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "secure_delete(1)"},
		"_txlock": {"immediate"},
	}.Encode()
	return u.String()
}

// OpenDB is like [Open] for a database that the caller has opened, preferably with [DSN],
// and still owns: it migrates the schema, and Close leaves the database open. With bun,
// pass the *sql.DB inside the *bun.DB. The names of the tables begin with formsvc_.
//
// It fails if the driver isn't modernc.org/sqlite, or if connections lack one of the
// pragmas of DSN, without which writes wouldn't be durable. The store's writes and the
// caller's transactions wait for each other.
func OpenDB(ctx context.Context, db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, errors.New("sqlite: open: a database is required")
	}
	o := opts.withDefaults()
	s := newStore(&poolWriter{db: db}, bunstore.NewPrepared(db), bun.NewDB(db, sqlitedialect.New()), &o)
	s.pool = db
	err := checkPool(ctx, db)
	if err == nil && !o.SkipMigrations {
		err = s.ready(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", s.backend.Classify(err))
	}
	return s, nil
}

// Bind returns a store that works inside tx, a transaction of the caller: the store's
// writes commit or roll back with it. The store never commits tx. Like tx, the store must
// not be used by two goroutines at once. After the commit, call [formsvc.Service.Notify];
// otherwise deliveries and followers wait for their next poll. Of opts it uses only the
// keyring, which must be the same as that of other stores on the database.
//
// While tx is open, no other transaction can write, so keep it short. On a connection
// without _txlock=immediate ([DSN]), a transaction that has read can fail at its first
// write with [formsvc.ErrUnavailable], because another one has written meanwhile.
func Bind(tx storage.Tx, opts *Options) (formsvc.Store, error) {
	build, c, err := bunstore.CallersTx(tx, sqlitedialect.New())
	if err != nil {
		return nil, fmt.Errorf("sqlite: bind: %w", err)
	}
	o := opts.withDefaults()
	return newStore(&poolWriter{}, nil, nil, &o).records.Bound(build, c), nil
}

// checkPool checks two connections if the pool may have as many. A pragma set by a
// statement, and not in the data source name, is in effect on one of them only.
func checkPool(ctx context.Context, db *sql.DB) error {
	one, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	if err := checkDriver(ctx, db, one); err != nil {
		return err
	}
	if err := checkPragmas(ctx, one); err != nil || db.Stats().MaxOpenConnections == 1 {
		return err
	}
	other, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	return checkPragmas(ctx, other)
}

// checkDriver checks that the driver returns the errors that Classify knows.
func checkDriver(ctx context.Context, db *sql.DB, c *sql.Conn) error {
	var n int
	err := c.QueryRowContext(ctx, "SELECT formsvc_no_such_function()").Scan(&n)
	if _, ok := errors.AsType[*sqlite.Error](err); !ok && ctx.Err() == nil {
		return fmt.Errorf("the driver of the database, a %T, is not that of modernc.org/sqlite", db.Driver())
	}
	return ctx.Err()
}

// checkPragmas checks that the pragmas of DSN, or equally strong values, are in effect.
// SQLite reports no error for a pragma without effect.
func checkPragmas(ctx context.Context, c *sql.Conn) error {
	for _, p := range []struct {
		name, set string
		good      []string
	}{
		{"journal_mode", "WAL", []string{"wal"}},
		{"synchronous", "FULL", []string{"2", "3"}},
		{"foreign_keys", "1", []string{"1"}},
		{"secure_delete", "1", []string{"1"}},
	} {
		var got string
		if err := c.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&got); err != nil {
			return err
		}
		if !slices.Contains(p.good, got) {
			return fmt.Errorf("pragma %s is %s: open the database with sqlite.DSN, or add _pragma=%s(%s) to the data source name, "+
				"which is for every connection (is the file on a network file system?)", p.name, got, p.name, p.set)
		}
	}
	return nil
}

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
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// DSN returns the data source name under which a program opens a database file for its own
// tables and for [OpenDB], with the driver "sqlite" of modernc.org/sqlite:
//
//	db, err := sql.Open("sqlite", sqlite.DSN("app.db"))
//
// Its connections wait up to 5 seconds for another writer, log ahead and flush at each
// commit, hold to foreign keys and overwrite what is deleted; transactions take the lock
// to write when they begin, since one that reads first may find that it can't have it.
func DSN(path string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), OmitHost: !filepath.IsAbs(path)}
	u.RawQuery = url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "secure_delete(1)"},
		"_txlock": {"immediate"},
	}.Encode()
	return u.String()
}

// OpenDB is [Open] on a database that the caller has opened, best with [DSN], and goes on
// owning: it brings the schema up to date, and Close leaves the database open. A program
// that uses bun hands over the *sql.DB inside its *bun.DB. The names of the tables begin
// with formsvc_.
//
// It fails when the driver is another than modernc.org/sqlite, and when connections lack
// one of the pragmas of DSN, without which an answer would be no promise. Writes wait for
// transactions of the caller's, and those for writes.
func OpenDB(ctx context.Context, db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, errors.New("sqlite: open: a database is required")
	}
	s := New(bun.NewDB(db, sqlitedialect.New()), opts)
	err := checkPool(ctx, db)
	if err == nil && (opts == nil || !opts.SkipMigrations) {
		err = s.ready(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", s.backend.Classify(err))
	}
	return s, nil
}

// New returns a store on a database like that of [OpenDB], and does nothing with it: it is
// for programs that choose when to migrate. Migrate brings the schema up to date; then call
// CheckKeys. Nobody checks the pragmas. Hooks of db see the queries that bun builds, which
// are the rare ones.
func New(db *bun.DB, opts *Options) *Store {
	o := opts.withDefaults()
	s := newStore(&poolWriter{db: db.DB}, bunstore.NewPrepared(db.DB), db, &o)
	s.pool = db.DB
	return s
}

// A Tx is a transaction: a *sql.Tx, a bun.Tx or something around one.
type Tx interface {
	bun.IConn
	Commit() error
	Rollback() error
}

// Bind returns a store that works inside tx, a transaction of the caller: what the store
// writes commits or rolls back with it. The store never commits tx. Like tx it
// must not be used by two goroutines at once. After the commit, call
// [formsvc.Service.Notify], or leave deliveries and followers to their next poll. Of opts
// it uses the keyring, which must be that of the other stores on the database.
//
// While tx is open nobody else can write; it should be short. On a connection without
// _txlock=immediate ([DSN]), a transaction that has read something is refused the first
// write, with [formsvc.ErrUnavailable], when somebody else has written meanwhile.
func Bind(tx Tx, opts *Options) (formsvc.Store, error) {
	build, c, err := bunstore.CallersTx(tx, sqlitedialect.New())
	if err != nil {
		return nil, fmt.Errorf("sqlite: bind: %w", err)
	}
	o := opts.withDefaults()
	return newStore(&poolWriter{}, nil, nil, &o).records.Bound(build, c), nil
}

// checkPool looks at two connections where the pool may have as many: a pragma that was
// set by a statement, instead of in the data source name, is in force on one of them only.
func checkPool(ctx context.Context, db *sql.DB) error {
	one, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	if err := checkDriver(ctx, db, one); err != nil {
		return err
	}
	if err := checkCallers(ctx, one); err != nil || db.Stats().MaxOpenConnections == 1 {
		return err
	}
	other, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	return checkCallers(ctx, other)
}

// checkDriver makes sure that errors are those that Classify knows.
func checkDriver(ctx context.Context, db *sql.DB, c *sql.Conn) error {
	var n int
	err := c.QueryRowContext(ctx, "SELECT formsvc_no_such_function()").Scan(&n)
	if _, ok := errors.AsType[*sqlite.Error](err); !ok && ctx.Err() == nil {
		return fmt.Errorf("the driver of the database, a %T, is not that of modernc.org/sqlite", db.Driver())
	}
	return ctx.Err()
}

// checkCallers makes sure of the pragmas of DSN, or what is as good.
func checkCallers(ctx context.Context, c *sql.Conn) error {
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
			return fmt.Errorf("pragma %s is %s on a connection of the program's: "+
				"open the database with sqlite.DSN, or add _pragma=%s(%s) to the data source name, which is for every connection",
				p.name, got, p.name, p.set)
		}
	}
	return nil
}

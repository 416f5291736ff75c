package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// OpenDB is [Open] on a database that the caller has opened, with the driver of
// github.com/jackc/pgx/v5/stdlib, and goes on owning: it checks the same, brings the schema
// up to date, and Close leaves the database open. A program that uses bun hands over the
// *sql.DB inside its *bun.DB. The tables lie beside the caller's, in the first schema of
// its search_path; their names begin with formsvc_.
//
// It does not listen for the work of other processes, but tells them of its own: what they
// queue is found when a Wait is over. The pool is the caller's: while all of its
// connections are in transactions of the caller's, the store waits. Behind a pooler that
// can't keep prepared statements set [Options.Unprepared].
func OpenDB(ctx context.Context, db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("postgres: open: a database is required")
	}
	o := opts.withDefaults()
	s := New(bun.NewDB(db, pgdialect.New()), &o)
	if err := db.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("postgres: open: %w", s.backend.Classify(err))
	}
	if err := checkDriver(ctx, db); err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	if err := s.start(ctx, &o); err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	return s, nil
}

// New returns a store on a database like that of [OpenDB], and does nothing with it: it
// is for programs that choose when to migrate. Migrate brings the schema up to date; then
// call CheckKeys. Nobody checks the connection: standard_conforming_strings must be on.
// Hooks of db see the queries that bun builds, which are the rare ones.
func New(db *bun.DB, opts *Options) *Store {
	o := opts.withDefaults()
	// Where plans are not fixed, those of the queue are made for the tables as
	// they are at the time.
	return newStore(db, &o, unplanned{db.DB})
}

// A Tx is a transaction: a *sql.Tx, a bun.Tx or something around one, such as the
// ConnPool of a transaction of gorm.
type Tx interface {
	bun.IConn
	Commit() error
	Rollback() error
}

// Bind returns a store that works inside tx, a transaction of the caller; [BindPgx] takes
// a pgx.Tx. What the store writes commits or rolls back with tx, which the store never
// commits. Like tx it
// must not be used by two goroutines at once. After the commit, call
// [formsvc.Service.Notify], or leave deliveries and followers to their next poll. Of opts
// it uses the keyring, which must be that of the other stores on the database.
func Bind(tx Tx, opts *Options) (formsvc.Store, error) {
	build, c, err := bunstore.CallersTx(tx, pgdialect.New())
	if err != nil {
		return nil, fmt.Errorf("postgres: bind: %w", err)
	}
	return bindTo(build, c, opts), nil
}

func bindTo(build bunstore.Builder, c bun.IConn, opts *Options) formsvc.Store {
	b := &backend{shard: 8 + rand.IntN(8)} //nolint:gosec // no secret
	o := opts.withDefaults()
	return bunstore.New(bunstore.Config{Backend: b, Keys: o.Keyring, Rebind: bunstore.Rebinder()}).Bound(build, c)
}

// checkDriver makes sure that the driver takes what only pgx takes, be it pgx itself or
// something around it that measures or traces.
func checkDriver(ctx context.Context, db *sql.DB) error {
	var n int
	err := db.QueryRowContext(ctx, "SELECT cardinality($1::text[])", pgx.QueryExecModeExec, []string{"a", "b"}).Scan(&n)
	if err != nil || n != 2 {
		return fmt.Errorf("the driver of the database, a %T, is not that of github.com/jackc/pgx/v5/stdlib: %w", db.Driver(), err)
	}
	return nil
}

// checkServer makes sure that the promises of this package can be kept.
func (s *Store) checkServer(ctx context.Context) error {
	for _, setting := range []struct{ name, bad, good string }{
		{"synchronous_commit", "off", ""},
		{"standard_conforming_strings", "off", ""},
		{"server_encoding", "", "UTF8"},
	} {
		var got string
		if err := s.db.QueryRowContext(ctx, "SHOW "+setting.name).Scan(&got); err != nil {
			return s.backend.Classify(err)
		}
		if got == setting.bad || (setting.good != "" && got != setting.good) {
			return fmt.Errorf("the server's %s is %s, which would lose or change what is stored", setting.name, got)
		}
	}
	return nil
}

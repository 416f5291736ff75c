package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// OpenDB is like [Open] for a database that the caller has opened with the driver of
// github.com/jackc/pgx/v5/stdlib and still owns. It makes the same checks and migrates the
// schema; Close leaves the database open. With bun, pass the *sql.DB inside the *bun.DB.
// The tables are beside the caller's, in the first schema of its search_path; their names
// begin with formsvc_.
//
// It doesn't listen for work of other processes but notifies them of its own. What they
// queue is found at the next poll. The store uses the caller's pool: if all connections are
// in transactions of the caller, the store waits. Behind a pooler that can't keep prepared
// statements, set [Options.Unprepared].
func OpenDB(ctx context.Context, db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("postgres: open: a database is required")
	}
	o := opts.withDefaults()
	// If plans aren't fixed, plan each statement of the queue for the tables as they are now.
	s := new(Store)
	s.assemble(bun.NewDB(db, pgdialect.New()), &o, unplanned{db})
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

// Bind returns a store that works inside tx, a transaction of the caller; [BindPgx] takes one
// of pgx. The store's writes commit or roll back with tx, which the store never commits. Like
// tx, the store must not be used by two goroutines at once. Once it has created a response,
// changes of its campaign wait until tx ends. After the commit, call
// [formsvc.Service.Notify]; otherwise deliveries and followers wait for their next poll. Of
// opts it uses only the keyring, which must be the same as that of other stores on the
// database.
func Bind(tx storage.Tx, opts *Options) (formsvc.Store, error) {
	build, c, err := bunstore.CallersTx(tx, pgdialect.New())
	if err != nil {
		return nil, fmt.Errorf("postgres: bind: %w", err)
	}
	return bind(build, c, opts), nil
}

// checkDriver checks that the driver accepts what only pgx accepts: it is pgx, or a
// wrapper that measures or traces it.
func checkDriver(ctx context.Context, db *sql.DB) error {
	var n int
	err := db.QueryRowContext(ctx, "SELECT cardinality($1::text[])", pgx.QueryExecModeExec, []string{"a", "b"}).Scan(&n)
	if err != nil || n != 2 {
		return fmt.Errorf("the driver of the database, a %T, is not that of github.com/jackc/pgx/v5/stdlib: %w", db.Driver(), err)
	}
	return nil
}

// checkServer checks that the server's settings allow what this package promises.
func (s *Store) checkServer(ctx context.Context) error {
	for _, setting := range []struct{ name, bad, good string }{
		{"synchronous_commit", "off", ""},
		{"standard_conforming_strings", "off", ""},
		{"server_encoding", "", "UTF8"},
		{"client_encoding", "", "UTF8"},
		{"bytea_output", "escape", ""},
		{"array_nulls", "off", ""},
	} {
		var got string
		if err := s.db.QueryRowContext(ctx, "SHOW "+setting.name).Scan(&got); err != nil {
			return s.backend.Classify(err)
		}
		if got == setting.bad || (setting.good != "" && got != setting.good) {
			return fmt.Errorf("the server's %s is %s, which would lose or change what is stored; set it for the database or the role", setting.name, got)
		}
	}
	return nil
}

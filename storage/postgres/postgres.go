package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/webhook/delivery"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Options configures a store. The zero value is ready for use.
type Options struct {
	// MaxConns is the most connections that Open keeps. Defaults to 16.
	MaxConns int
	// StatementTimeout limits how long one statement of a store from Open may take. The
	// server ends a longer one, and the call fails with formsvc.ErrUnavailable. If the
	// server is silent, the connection is closed 2 seconds later. Migrations and copies
	// have no limit. A statement_timeout in the data source name is for the server alone.
	// Negative means no limit. Defaults to 20 seconds.
	StatementTimeout time.Duration
	// Unprepared sends every statement in full instead of preparing the frequent ones,
	// for poolers that can't keep prepared statements. Defaults to whether Open finds a
	// pooler, unless the data source name has a default_query_exec_mode; exec sets it.
	Unprepared bool
	// NoListen makes Wait find work of other processes only when its time is over,
	// instead of listening for it (LISTEN) on a connection beside MaxConns. Defaults as
	// Unprepared does, because poolers don't keep the LISTEN of a session.
	NoListen bool
	// Keyring encrypts the secrets of webhooks and the values of their headers. Defaults
	// to none: they are stored in plain text.
	Keyring *keyring.Keyring
	// SkipMigrations makes Open leave the schema as it is, to inspect it or migrate it
	// later. Open then doesn't check whether the database may be used. Defaults to false.
	SkipMigrations bool
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.MaxConns = cmp.Or(max(d.MaxConns, 0), 16)
	d.StatementTimeout = max(cmp.Or(d.StatementTimeout, 20*time.Second), 0)
	return d
}

// A Store keeps everything in one Postgres database, which several nodes may share. It
// implements formsvc.Store and delivery.Queue, and is safe for concurrent use.
type Store struct {
	formsvc.Store
	delivery.Queue
	storage.Database

	records *bunstore.Store // implements all three

	db         *sql.DB
	owned      bool
	maxConns   int          // that are kept idle, if owned
	idleClosed atomic.Int64 // when idle connections were closed because one failed
	backend    *backend
	tx         *bunstore.Transactions
	listener   *listener // nil if the store doesn't listen
	notifier   *notifier
}

// Open connects to the database that dsn names, as a URL or as key=value pairs, and
// migrates its schema. It fails if the database isn't in UTF-8 or doesn't wait for its
// log to reach the disk. It fails with keyring.ErrUnknownKey if secrets in it are sealed
// under keys that [Options.Keyring] doesn't have, and with formsvc.ErrMoved once a copy
// of the data to another database has begun. Close disconnects.
func Open(ctx context.Context, dsn string, opts *Options) (*Store, error) {
	o := opts.withDefaults()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The driver's error repeats the data source name, and removes the password only
		// as far as it could parse it.
		return nil, errors.New("postgres: open: the data source name is not valid")
	}
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeExec {
		o.Unprepared, o.NoListen = true, true
	}
	if cfg.DefaultQueryExecMode != pgx.QueryExecModeSimpleProtocol {
		// bun writes arguments into the text. Each text is seen once, so a statement
		// cache would only waste memory.
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	// bun's quoting is safe only with it.
	cfg.RuntimeParams["standard_conforming_strings"] = "on"
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	if !o.Unprepared || !o.NoListen {
		between, err := pooled(ctx, dsn, cfg)
		if err != nil {
			return nil, fmt.Errorf("postgres: open: %w", (*backend)(nil).Classify(err))
		}
		o.Unprepared, o.NoListen = o.Unprepared || between, o.NoListen || between
	}
	s := connect(cfg, &o)
	if err := s.start(ctx, &o); err != nil {
		return nil, fmt.Errorf("postgres: open: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// connect returns a store with a pool of connections, none of which is open yet.
func connect(cfg *pgx.ConnConfig, o *Options) *Store {
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectLimit
	}
	cfg.DialFunc = newDialer().DialContext
	listening := cfg.Copy() // which is silent for as long as nothing happens
	s := &Store{owned: true, maxConns: o.MaxConns}
	cfg.OnPgError = s.endSessions(cfg.OnPgError)
	if o.StatementTimeout > 0 {
		cfg.DialFunc = s.guard(cfg.DialFunc, o.StatementTimeout+silenceMargin)
	}
	hooks := []stdlib.OptionOpenDB{stdlib.OptionShouldPing(isStale)}
	if !o.Unprepared {
		_, given := cfg.RuntimeParams["statement_timeout"]
		hooks = append(hooks, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			if err := planFixed(ctx, conn); err != nil || given || o.StatementTimeout == 0 {
				return err
			}
			_, err := conn.Exec(ctx, fmt.Sprintf("SELECT set_config('statement_timeout', '%d', false)", o.StatementTimeout.Milliseconds()))
			return err
		}))
	}
	db := stdlib.OpenDB(*cfg, hooks...)
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	s.assemble(bun.NewDB(db, pgdialect.New()), o, nil)
	if !o.NoListen {
		s.listener = &listener{config: listening}
	}
	return s
}

// planFixed makes the plans of prepared statements independent of the server's
// statistics.
//
// By default the server plans a page of a list again for each set of arguments, because
// it takes an unknown LIMIT for a tenth of the table. Planning then takes three times as
// long as running. And it plans a sequential scan for a table that is nearly empty, and
// keeps that plan while the table grows to a million rows. Every prepared statement has
// an index to use.
func planFixed(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, sameEverywhere+", set_config('plan_cache_mode', 'force_generic_plan', false), "+
		"set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false), set_config('jit', 'off', false)")
	return err
}

func (s *Store) start(ctx context.Context, o *Options) error {
	if err := s.checkServer(ctx); err != nil {
		return err
	}
	if o.SkipMigrations {
		return nil
	}
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	if err := bunstore.IgnoreNewer(s.records.Ping(ctx)); err != nil {
		return err
	}
	return s.CheckKeys(ctx)
}

// assemble makes a store that runs the statements of the queue on queue; if queue is nil,
// where it runs all others.
func (s *Store) assemble(db *bun.DB, o *Options, queue bun.IConn) {
	s.db = db.DB
	// Counter rows 0 to 7 are for stores, and 8 to 15 for bound stores, whose
	// transactions may stay open as long as their owner likes.
	s.backend = newBackend(rand.IntN(8)) //nolint:gosec // not a secret
	s.tx = &bunstore.Transactions{
		Conn: func(ctx context.Context) (bun.IConn, func(bool), error) { return bunstore.Borrow(ctx, s.db) },
		// If a statement of a transaction failed, the server answers the commit by
		// rolling back, without an error. In that case the first statement here fails.
		Begin: "begin", Commit: "select 1; commit", Undone: undone, Retryable: retryable,
	}
	hot := bun.IConn(db.DB) // for statements that are transactions by themselves
	if !o.Unprepared {
		hot = bunstore.NewPrepared(db.DB)
	}
	s.notifier = newNotifier(s)
	s.records = bunstore.New(bunstore.Config{
		Backend: s.backend, Dialect: s.backend.dialect(), Build: db, Read: hot, Queue: queue, Keys: o.Keyring,
		Queued: s.notifier.tell,
		// Postgres has as many writers as connections, and flushes its log once for several of
		// them.
		Transactions: s.tx, UnitTimeout: 30 * time.Second,
	})
	s.Store, s.Queue, s.Database = s.records, s.records, s.records
}

// Close refuses new calls, waits for the writes under way and closes the connections that
// Open made.
func (s *Store) Close() error {
	s.records.SetClosed()
	s.notifier.close()
	if s.listener != nil {
		s.listener.close()
	}
	if s.owned {
		return s.db.Close()
	}
	return nil
}

// migrationLock is the key of the advisory lock that serializes migrations: the bytes of
// "formsvc" as a number.
const migrationLock = 0x666f726d737663

// isStale reports whether to ping a connection before using it. The limit is a little
// more than the driver's second; otherwise each poll of an idle delivery engine would be
// two queries.
func isStale(_ context.Context, p stdlib.ShouldPingParams) bool {
	return p.IdleDuration > 2*time.Second
}

// Migrate migrates the schema, and gives the database its identity. Several nodes may
// call it at once. It fails with storage.ErrSchemaNewer if the schema is so much newer that this
// release can't work with it.
func (s *Store) Migrate(ctx context.Context) error {
	list := bunstore.Migrations(migrationFiles, false)
	err := s.inTx(ctx, func(ctx context.Context, c bun.IConn) error { return bunstore.Migrate(ctx, list, c, schemaExists) })
	if err == nil {
		err = s.moveFeed(ctx)
	}
	return s.backend.Classify(err)
}

// Migrations returns every step of the schema and when it was applied.
func (s *Store) Migrations(ctx context.Context) (list []storage.Migration, err error) {
	steps := bunstore.Migrations(migrationFiles, false)
	err = s.inTx(ctx, func(ctx context.Context, c bun.IConn) error {
		list, err = bunstore.Status(ctx, steps, c, schemaExists)
		return err
	})
	return list, s.backend.Classify(err)
}

// PoolStats returns, for metrics, the number of open connections and how long calls
// waited for one. The connection that listens for notifications isn't counted.
func (s *Store) PoolStats() sql.DBStats { return s.db.Stats() }

// inTx runs a migration. Its lock ends with the transaction, so it works through a
// pooler, and a crash releases it.
func (s *Store) inTx(ctx context.Context, do func(context.Context, bun.IConn) error) error {
	return unlimited(ctx, s.tx, func(ctx context.Context, c bun.IConn) error {
		if _, err := c.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", migrationLock)); err != nil {
			return err
		}
		return do(ctx, c)
	})
}

const schemaExists = "SELECT to_regclass('formsvc_schema') IS NOT NULL"

package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Options changes how a store works. The zero value is ready for use.
type Options struct {
	// GroupLimit is how many concurrent new responses may share one statement;
	// 1 gives each its own. Defaults to 256.
	GroupLimit int
	// MaxConns is how many connections Open keeps at most. Defaults to 16.
	MaxConns int
	// UnitTimeout bounds one write once it is under way. Defaults to 30 seconds.
	UnitTimeout time.Duration
	// Unprepared sends every statement anew instead of preparing the frequent
	// ones, for poolers that can't keep prepared statements. Defaults to false;
	// a data source name with default_query_exec_mode=exec sets it.
	Unprepared bool
	// NoListen makes Wait return for work that other processes queued only when
	// its time is over, instead of listening for it (LISTEN) on a connection of
	// its own beside MaxConns. Defaults to false; a data source name with
	// default_query_exec_mode=exec sets it, since poolers can't keep what LISTEN
	// leaves in a session.
	NoListen bool
	// Keyring encrypts the secrets of webhooks and the values of their headers.
	// Defaults to none: they are stored readable.
	Keyring *keyring.Keyring
	// SkipMigrations makes Open leave the schema as it is, for looking at it or
	// migrating later, and not check whether it may be used. Defaults to false.
	SkipMigrations bool
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.GroupLimit = cmp.Or(max(d.GroupLimit, 0), 256)
	d.MaxConns = cmp.Or(max(d.MaxConns, 0), 16)
	d.UnitTimeout = cmp.Or(max(d.UnitTimeout, 0), 30*time.Second)
	return d
}

// A Migration is one step of the schema.
type Migration = bunstore.Migration

// A Store keeps everything in one Postgres database, which several nodes may
// share. It implements formsvc.Store and delivery.Queue, and is safe for
// concurrent use.
type Store struct {
	formsvc.Store
	delivery.Queue
	storage.Database

	records *bunstore.Store // what all three are

	db       *sql.DB
	owned    bool
	place    string // without a password; "" for a database that the caller opened
	backend  *backend
	tx       *bunstore.Transactions
	listener *listener // nil when there is nothing to listen on
	notifier *notifier
}

// Open connects to the database that dsn names, as a URL or as key=value
// pairs, and brings its schema up to date. It fails when the database is not
// in UTF-8 or does not wait for its log to reach the disk, and with
// keyring.ErrUnknownKey when secrets in it are sealed under keys that are not in
// [Options.Keyring], and with formsvc.ErrMoved when its data is being copied to another
// database, or was. Close disconnects.
func Open(ctx context.Context, dsn string, opts *Options) (*Store, error) {
	o := opts.withDefaults()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The error of the driver repeats the data source name without its
		// password only as far as it could parse it.
		return nil, errors.New("postgres: open: the data source name is not valid")
	}
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeExec {
		o.Unprepared, o.NoListen = true, true
	}
	if cfg.DefaultQueryExecMode != pgx.QueryExecModeSimpleProtocol {
		// bun writes arguments into the text, so that each text is seen once and a
		// statement cache only fills memory.
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	// bun's quoting is safe only with it.
	cfg.RuntimeParams["standard_conforming_strings"] = "on"
	hooks := []stdlib.OptionOpenDB{stdlib.OptionShouldPing(isStale)}
	if !o.Unprepared {
		hooks = append(hooks, stdlib.OptionAfterConnect(planFixed))
	}
	db := stdlib.OpenDB(*cfg, hooks...)
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	s := newStore(bun.NewDB(db, pgdialect.New()), &o, nil)
	s.owned = true
	s.place = placeOf(cfg)
	if !o.NoListen {
		s.listener = &listener{config: cfg}
	}
	if err := s.start(ctx, &o); err != nil {
		return nil, fmt.Errorf("postgres: open: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// planFixed makes the plans of prepared statements independent of what the server
// happens to know when it makes them.
//
// Left to itself it plans a page of a list anew for each set of arguments, since
// it takes an unknown LIMIT for a tenth of the table; planning then takes three
// times as long as running. And it plans to read a table that is nearly empty
// from end to end, and keeps to that plan while the table grows to a million
// rows. Every prepared statement has an index to go by.
func planFixed(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT set_config('plan_cache_mode', 'force_generic_plan', false), "+
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
	if err := s.records.CheckActive(ctx); err != nil {
		return err
	}
	return s.CheckKeys(ctx)
}

// newStore returns a store that runs the statements of the queue on queue, or
// nil for where it runs all others.
func newStore(db *bun.DB, o *Options, queue bun.IConn) *Store {
	// Counter rows 0 to 7 are for stores, 8 to 15 for bound ones, whose
	// transactions may stay open for as long as their owner likes.
	s := &Store{db: db.DB, backend: &backend{shard: rand.IntN(8)}} //nolint:gosec // no secret
	s.tx = &bunstore.Transactions{
		Conn: func(ctx context.Context) (bun.IConn, func(bool), error) { return bunstore.Borrow(ctx, s.db) },
		// The server answers the commit of a transaction in which a statement failed by
		// rolling it back, without an error; the first statement here fails then.
		Begin: "begin", Commit: "select 1; commit", Undone: undone, Retryable: retryable,
	}
	hot := bun.IConn(db.DB) // for statements that are a transaction by themselves
	if !o.Unprepared {
		hot = bunstore.NewPrepared(db.DB)
	}
	s.notifier = newNotifier(s)
	s.records = bunstore.New(bunstore.Config{
		Backend: s.backend, Build: db, Read: hot, Queue: queue, Keys: o.Keyring, Rebind: bunstore.Rebinder(),
		ReadTogether: readTogether, Queued: s.notifier.tell,
		// Postgres has as many writers as connections, and shares the flush of its log among them.
		Transactions: s.tx, GroupLimit: o.GroupLimit, ManyWriters: true, UnitTimeout: o.UnitTimeout,
	})
	s.Store, s.Queue, s.Database = s.records, s.records, s.records
	return s
}

// Close refuses new calls, waits for the writes that are under way and
// disconnects what Open connected.
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

// migrationLock is the key of the advisory lock that migrating processes take
// turns with: the bytes of "formsvc" as a number.
const migrationLock = 0x666f726d737663

// isStale reports whether a connection is to be tried before it is used. A little
// more than the driver's second: the poll of an idle delivery engine would
// otherwise be two queries each time.
func isStale(_ context.Context, p stdlib.ShouldPingParams) bool {
	return p.IdleDuration > 2*time.Second
}

// Migrate brings the schema up to date, and gives the database its identity. Several
// nodes may do so at once. It refuses a schema that is newer than this release,
// or made by another build.
func (s *Store) Migrate(ctx context.Context) error {
	list, err := migrations()
	if err != nil {
		return err
	}
	err = bunstore.Steps(ctx, list, bunstore.ColumnsOfPostgres, s.inTx)
	if err == nil {
		err = s.inTx(ctx, bunstore.MakeIdentity)
	}
	if err == nil {
		err = s.moveFeed(ctx)
	}
	return s.backend.Classify(err)
}

// Migrations returns every step of the schema and when it was applied.
func (s *Store) Migrations(ctx context.Context) (list []Migration, err error) {
	if list, err = migrations(); err != nil {
		return nil, err
	}
	err = s.inTx(ctx, func(ctx context.Context, c bun.IConn) error {
		list, err = bunstore.Status(ctx, list, c, bunstore.ColumnsOfPostgres)
		return err
	})
	return list, s.backend.Classify(err)
}

// PoolStats returns how many connections the store has open and how long was waited for
// one, for metrics. The one that listens for notifications is not among them.
func (s *Store) PoolStats() sql.DBStats { return s.db.Stats() }

// inTx runs a step of a migration. The lock ends with the transaction, so it
// works through a pooler and no crash leaves it behind.
func (s *Store) inTx(ctx context.Context, do func(context.Context, bun.IConn) error) error {
	return s.tx.Run(ctx, func(ctx context.Context, c bun.IConn) error {
		if _, err := c.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", migrationLock)); err != nil {
			return err
		}
		return do(ctx, c)
	})
}

const schemaExists = "SELECT to_regclass('formsvc_schema') IS NOT NULL"

func migrations() ([]Migration, error) { return bunstore.Migrations(migrationFiles, "migrations") }

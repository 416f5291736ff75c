package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

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
	// BusyTimeout is how long to wait for another process that writes. Defaults to 5
	// seconds.
	BusyTimeout time.Duration
	// LogSize is the size in bytes at which the log is copied into the database file. A
	// small log is copied more often, with the same pages again. A large one takes more
	// disk space, and more time to open after a crash. Defaults to 16 MB.
	LogSize int64
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
	d.BusyTimeout = cmp.Or(max(d.BusyTimeout, 0), 5*time.Second)
	d.LogSize = cmp.Or(max(d.LogSize, 0), 4_000*pageSize)
	return d
}

// A Store keeps everything in one SQLite database. It implements formsvc.Store
// and delivery.Queue, and is safe for concurrent use.
type Store struct {
	formsvc.Store
	delivery.Queue
	storage.Database

	records *bunstore.Store // implements all three

	backend     *backend
	writer      writer
	tx          *bunstore.Transactions // uses writer
	checkpoints *checkpointer          // nil for a database that the caller opened
	owned       []*sql.DB              // closed by Close, last first
	path        string                 // "" for a database that the caller opened
	options     *Options
	pool        *sql.DB // for long reads: the store's read pool, or the caller's
	close       sync.Once
}

// Open opens the database file at path and migrates its schema. If there is no file, Open
// creates one that only its owner can read. It fails with keyring.ErrUnknownKey if
// secrets in it are sealed under keys that [Options.Keyring] doesn't have, and with
// formsvc.ErrMoved once a copy of the data to another database has begun. Close closes
// it.
//
// Other processes may open the same file. The file must be on a local disk.
func Open(ctx context.Context, path string, opts *Options) (*Store, error) {
	o := opts.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", err)
	}
	// SQLite would make the file readable by everyone; its journal files get the mode of
	// this one.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", err)
	}
	s, err := open(ctx, path, &o)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	return s, nil
}

// readConns is the most queries that run at once.
const readConns = 8

func open(ctx context.Context, path string, o *Options) (_ *Store, err error) {
	writeDB, err := sql.Open("sqlite", dsn(path, o, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		// A last resort: the checkpointer keeps the log far shorter.
		fmt.Sprintf("wal_autocheckpoint(%d)", o.logFrames()*muchLonger),
		// Overwrite deleted data with zeros, so that erased data is gone from the file.
		// Pruning takes twice as long; creating responses costs no more.
		"secure_delete(1)"))
	if err != nil {
		return nil, err
	}
	defer closeOnError(&err, writeDB)
	writeDB.SetMaxOpenConns(1)
	conn, err := connect(ctx, writeDB, o.BusyTimeout)
	if err != nil {
		return nil, err
	}
	if err := checkPragmas(ctx, conn); err != nil {
		return nil, err
	}
	readDB, err := sql.Open("sqlite", dsn(path, o, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	defer closeOnError(&err, readDB)
	readDB.SetMaxOpenConns(readConns)
	readDB.SetMaxIdleConns(readConns)

	w := &pinnedWriter{conn: conn, c: bunstore.NewPrepared(conn)}
	s := newStore(w, bunstore.NewPrepared(readDB), bun.NewDB(readDB, sqlitedialect.New()), o)
	s.owned, s.pool, s.path, s.options = []*sql.DB{writeDB, readDB}, readDB, path, o
	moveDB, err := sql.Open("sqlite", dsn(path, o, "synchronous(FULL)"))
	if err != nil {
		return nil, err
	}
	defer closeOnError(&err, moveDB)
	moveDB.SetMaxOpenConns(1)
	s.checkpoints = &checkpointer{db: moveDB, writer: w, limit: o.logFrames()}
	if o.SkipMigrations {
		return s, nil
	}
	return s, s.ready(ctx)
}

// connect opens a connection. The very first one turns on the write-ahead log; SQLite
// doesn't wait by itself if another process is doing the same.
func connect(ctx context.Context, db *sql.DB, patience time.Duration) (*sql.Conn, error) {
	for end := time.Now().Add(patience); ; {
		conn, err := db.Conn(ctx)
		var e *sqlite.Error
		if !errors.As(err, &e) || primary(e) != lib.SQLITE_BUSY || time.Now().After(end) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond + rand.N(10*time.Millisecond)): //nolint:gosec // jitter
		}
	}
}

// ready checks that the database can be used.
func (s *Store) ready(ctx context.Context) error {
	err := s.Migrate(ctx)
	if err == nil {
		err = bunstore.IgnoreNewer(s.records.Ping(ctx))
	}
	if err == nil {
		err = s.CheckKeys(ctx)
	}
	return s.backend.Classify(err)
}

func closeOnError(err *error, db *sql.DB) {
	if *err != nil {
		*err = errors.Join(*err, db.Close())
	}
}

func newStore(w writer, read bun.IConn, build bunstore.Builder, o *Options) *Store {
	s := &Store{backend: newBackend(), writer: w}
	s.tx = &bunstore.Transactions{
		// Acquire the write lock before reading: SQLite would refuse it at once to a
		// transaction that has read.
		Conn: w.take, Begin: "BEGIN IMMEDIATE", Commit: "COMMIT",
		// On a full disk the commit mark, which is written last, is missing.
		Undone:    isFull,
		Committed: func() { s.checkpoints.committed() },
	}
	s.records = bunstore.New(bunstore.Config{
		Backend: s.backend, Dialect: s.backend.dialect(), Build: build, Read: read, Keys: o.Keyring,
		// A commit blocks its thread while the disk flushes. On one processor it also
		// blocks the goroutines that are about to write, which would then miss every group,
		// so that groups would have one member.
		Transactions: s.tx, Gather: runtime.Gosched,
	})
	s.Store, s.Queue, s.Database = s.records, s.records, s.records
	return s
}

// Close refuses new calls, commits the writes under way and closes what Open opened.
func (s *Store) Close() error {
	var err error
	s.close.Do(func() {
		s.records.SetClosed()
		err = errors.Join(s.checkpoints.close(), s.writer.close())
		for _, db := range s.owned {
			err = errors.Join(err, db.Close())
		}
	})
	return err
}

// Migrate migrates the schema, and gives the database its identity. Two processes may
// call it at once. It fails with storage.ErrSchemaNewer if the schema is so much newer that this release can't work
// with it.
func (s *Store) Migrate(ctx context.Context) error {
	list := bunstore.Migrations(migrationFiles, true)
	current := false
	err := alone(ctx, s.writer, func(c bun.IConn) error { // without the write lock, which another process may hold for long
		current = bunstore.Current(ctx, list, c, schemaExists)
		return nil
	})
	if err != nil || current {
		return err
	}
	return s.tx.Run(ctx, func(ctx context.Context, c bun.IConn) error { return bunstore.Migrate(ctx, list, c, schemaExists) })
}

// Migrations returns every step of the schema and when it was applied.
func (s *Store) Migrations(ctx context.Context) (list []storage.Migration, err error) {
	steps := bunstore.Migrations(migrationFiles, true)
	err = alone(ctx, s.writer, func(c bun.IConn) (err error) {
		list, err = bunstore.Status(ctx, steps, c, schemaExists)
		return err
	})
	return list, err
}

const schemaExists = "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'formsvc_schema'"

func dsn(path string, o *Options, pragmas ...string) string {
	q := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds())}}
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

package bunstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/keyring"
)

// A Store implements formsvc.Store, delivery.Queue and storage.Database on an SQL
// database. Packages sqlite and postgres wrap it. The methods of each role are in the file
// named after what it stores.
type Store struct {
	config    *Config
	backend   Backend
	dialect   Dialect
	keys      *keyring.Keyring
	build     Builder
	read      bun.IConn
	queue     bun.IConn
	responses responseSQL
	commit    func(context.Context, *Unit) error
	drain     func()
	queued    func()
	wake      chan struct{}
	closed    chan struct{}
	close     *sync.Once
}

// A Builder makes bun queries; *bun.DB and bun.Tx are builders.
type Builder interface {
	NewSelect() *bun.SelectQuery
	NewInsert() *bun.InsertQuery
	NewUpdate() *bun.UpdateQuery
	NewDelete() *bun.DeleteQuery
	NewValues(model any) *bun.ValuesQuery
	NewRaw(query string, args ...any) *bun.RawQuery
}

// Config configures a Store.
type Config struct {
	Backend Backend
	Dialect Dialect
	Build   Builder
	// Read runs reads.
	Read bun.IConn
	// Queue runs the reads of the delivery queue, and units of one statement. Defaults to
	// Read.
	Queue bun.IConn
	// Keys seal secrets. Nil stores them in plain text.
	Keys *keyring.Keyring
	// Queued is called after every commit of this store that left deliveries to send, and
	// by Notify. It must not block. Nil does nothing.
	Queued func()
	// Transactions run the units. A store that is only bound needs none.
	Transactions *Transactions
	// GroupLimit is the most units that share a commit. Defaults to 256.
	GroupLimit int
	// Gather is called before a group is assembled, to wait for more units. Nil does
	// nothing.
	Gather func()
	// UnitTimeout limits how long a unit may take once it is under way. Defaults to no
	// limit.
	UnitTimeout time.Duration
}

// New returns a Store.
func New(c Config) *Store {
	if c.Queue == nil {
		c.Queue = c.Read
	}
	s := &Store{
		config: &c, backend: c.Backend, dialect: c.Dialect, keys: c.Keys, build: c.Build, read: c.Read, queue: c.Queue,
		queued: c.Queued, responses: newResponseSQL(),
		wake: make(chan struct{}, 1), closed: make(chan struct{}), close: new(sync.Once),
	}
	k := newCommitter(&c)
	s.commit, s.drain = k.commit, k.groups.close
	return s
}

// Bound returns a store that works in the caller's transaction c, built by build. Each
// unit runs in a savepoint, so that one that fails leaves nothing in the transaction.
func (s *Store) Bound(build Builder, c bun.IConn) *Store {
	bound := *s
	bound.build, bound.read, bound.queue = build, c, c
	bound.commit = func(ctx context.Context, u *Unit) error { return s.config.inSavepoint(ctx, c, u) }
	return &bound
}

// SetClosed makes every later call, and a Wait under way, fail with
// formsvc.ErrStoreClosed. It returns when the writes under way have ended.
func (s *Store) SetClosed() {
	s.close.Do(func() { close(s.closed) })
	s.drain()
}

// Closed returns a channel that SetClosed closes.
func (s *Store) Closed() <-chan struct{} { return s.closed }

// Woken returns the channel that wakes Wait.
func (s *Store) Woken() <-chan struct{} { return s.wake }

// Notify implements formsvc.MaintenanceStore.
func (s *Store) Notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if s.queued != nil {
		s.queued()
	}
}

// Scrub implements formsvc.MaintenanceStore for databases whose log can't be scrubbed
// from here.
func (s *Store) Scrub(ctx context.Context) error { return s.Usable(ctx) }

// ids lists the records that a call is about.
func ids(list ...formsvc.ID) []formsvc.ID { return list }

// ready returns why a call that names these records can't be served, or nil. Text that
// isn't a canonical identifier names no record. This check decides that for all
// databases, which would otherwise reject it, normalise it or find nothing.
func (s *Store) ready(ctx context.Context, named ...formsvc.ID) error {
	if err := s.Usable(ctx); err != nil {
		return err
	}
	for _, id := range named {
		if !id.Valid() {
			return formsvc.ErrNotFound
		}
	}
	return nil
}

// Usable returns why no call can be served, or nil.
func (s *Store) Usable(ctx context.Context) error {
	select {
	case <-s.closed:
		return formsvc.ErrStoreClosed
	default:
		return ctx.Err()
	}
}

// checkIDs checks the identifiers of records to create.
func checkIDs(ids ...formsvc.ID) error {
	for _, id := range ids {
		if !id.Valid() {
			return fmt.Errorf("bunstore: an identifier is not a canonical UUID: %w", formsvc.ErrInvalid)
		}
	}
	return nil
}

// write commits a function about those records, and then the change, unless that is nil, as one transaction.
func (s *Store) write(ctx context.Context, about []formsvc.ID, change *formsvc.Change, do func(ctx context.Context, c *Tx) error) error {
	err := s.ready(ctx, about...)
	if err == nil && change != nil {
		err = checkChange(change)
	}
	if err != nil {
		return err
	}
	return s.submit(ctx, &Unit{Do: func(ctx context.Context, c *Tx) error {
		if err := do(ctx, c); err != nil || change == nil {
			return err
		}
		return s.apply(ctx, c, change)
	}})
}

// single is write for a function that runs one statement, without a transaction around it if the database allows that.
func (s *Store) single(ctx context.Context, do func(ctx context.Context, c *Tx) error) error {
	return s.submit(ctx, &Unit{Single: true, Do: do})
}

// locked makes a query lock the rows that it finds. more ends the clause that does so.
func (s *Store) locked(q *bun.SelectQuery, more string) *bun.SelectQuery {
	if s.dialect.ManyWriters {
		return q.For("UPDATE" + more)
	}
	return q
}

// lock returns the clause of locked.
func (s *Store) lock(more string) string {
	if s.dialect.ManyWriters {
		return " FOR UPDATE" + more
	}
	return ""
}

// AddCount adds to the number of responses of a campaign: its arguments are the campaign, the shard and a number. One row
// of the counter may fall below zero; their sum does not.
const AddCount = "INSERT INTO formsvc_counters AS n (campaign_id, shard, responses) VALUES ($1, $2, $3)" +
	" ON CONFLICT (campaign_id, shard) DO UPDATE SET responses = n.responses + excluded.responses"

func (s *Store) addCount(ctx context.Context, c bun.IConn, campaign formsvc.ID, n int) error {
	_, err := c.ExecContext(ctx, AddCount, s.dialect.arg(campaign), s.dialect.Shard, n)
	return err
}

func (s *Store) submit(ctx context.Context, u *Unit) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := raise(s.commit(ctx, u)); err != nil {
		return s.backend.Classify(err)
	}
	if u.wake {
		s.Notify()
	}
	return nil
}

// Never is the stored form of the zero time.
const Never int64 = -62135596800000000

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// checkChange rejects a change that can't be stored.
func checkChange(change *formsvc.Change) error {
	for i := range change.Events {
		if err := checkEvent(&change.Events[i]); err != nil {
			return err
		}
	}
	if a := change.Audit; a != nil {
		if err := checkAudit(a); err != nil {
			return err
		}
	}
	if r := change.Idempotency; r != nil {
		return checkRecord(r)
	}
	return nil
}

// apply writes a change.
func (s *Store) apply(ctx context.Context, c *Tx, change *formsvc.Change) error {
	if r := change.Idempotency; r != nil {
		if err := s.remember(ctx, c, r); err != nil {
			return err
		}
	}
	if change.Recount != nil {
		if err := s.recount(ctx, c, change.Recount); err != nil {
			return err
		}
	}
	if a := change.Audit; a != nil {
		if err := s.appendAudit(ctx, c, a); err != nil {
			return err
		}
	}
	if len(change.Events) == 0 {
		return nil
	}
	wake, err := s.backend.InsertEvents(ctx, c, change.Events)
	c.wake = c.wake || wake
	for i := range change.Events {
		if e := &change.Events[i]; err == nil && e.Test {
			err = s.insertTest(ctx, c, e)
		}
	}
	return err
}

// decided runs a decide function, nil for an empty change, and applies the change it returns.
func decided[T any](ctx context.Context, s *Store, c *Tx, of T, decide func(T) (formsvc.Change, error)) error {
	if decide == nil {
		return nil
	}
	change, err := decide(of)
	if err == nil {
		err = checkChange(&change)
	}
	if err != nil {
		return err
	}
	return s.apply(ctx, c, &change)
}

// CallersTx returns how to build and run queries in a transaction of the caller.
func CallersTx(tx storage.Tx, dialect schema.Dialect) (Builder, bun.IConn, error) {
	switch t := tx.(type) {
	case nil:
		return nil, nil, errors.New("a transaction is required")
	case bun.Tx:
		return t, t.Tx, nil
	}
	// The bun.DB only builds queries; each one is given its connection.
	return bun.NewDB(nil, dialect), tx, nil
}

package bunstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
)

// A Store implements formsvc.Store, delivery.Queue and storage.Database on an SQL
// database. The packages sqlite and postgres wrap it. It has a type for each role.
type Store struct {
	*core
	accounts
	campaigns
	responses
	reviews
	files
	webhooks
	deliveries
	events
	journal
	quotas
	sessions
	maintenance
	queue
	sealing
}

// The roles are in the files that are named after what they keep.
type (
	accounts    struct{ *core }
	campaigns   struct{ *core }
	responses   struct{ *core }
	reviews     struct{ *core }
	files       struct{ *core }
	webhooks    struct{ *core }
	deliveries  struct{ *core }
	events      struct{ *core }
	journal     struct{ *core }
	quotas      struct{ *core }
	sessions    struct{ *core }
	maintenance struct{ *core }
	queue       struct{ *core }
	sealing     struct{ *core }
)

func newStore(c *core) *Store {
	return &Store{
		c, accounts{c}, campaigns{c}, responses{c}, reviews{c}, files{c}, webhooks{c}, deliveries{c}, events{c}, journal{c}, quotas{c},
		sessions{c}, maintenance{c}, queue{c}, sealing{c},
	}
}

// A core is what all roles work on.
type core struct {
	backend    Backend
	statements *Statements
	keys       *keyring.Keyring
	build      Builder
	read       bun.IConn
	queue      bun.IConn
	commit     func(context.Context, *Unit) error
	drain      func()
	rebind     func(string) string
	queued     func()
	readers    *grouper[*Read] // nil: each alone
	wake       chan struct{}
	closed     chan struct{}
	close      *sync.Once
}

// A Builder makes bun queries; *bun.DB and bun.Tx are builders.
type Builder interface {
	NewSelect() *bun.SelectQuery
	NewInsert() *bun.InsertQuery
	NewUpdate() *bun.UpdateQuery
	NewDelete() *bun.DeleteQuery
	NewRaw(query string, args ...any) *bun.RawQuery
}

// Config says what a Store works on.
type Config struct {
	Backend Backend
	Build   Builder
	// Read is where reads go.
	Read bun.IConn
	// Queue is where the reads of the delivery queue go, and units of one statement.
	// Defaults to Read.
	Queue bun.IConn
	// ReadTogether reads a group of responses with one query on c, each row with
	// ScanRead. Nil reads each alone.
	ReadTogether func(ctx context.Context, c bun.IConn, group []*Read) error
	// Keys seal what is secret. Nil stores it readable.
	Keys *keyring.Keyring
	// Queued is called after every commit of this store that left deliveries to
	// send, and by Notify. It must not wait. Defaults to nothing.
	Queued func()
	// Transactions run the units. A store that only gets bound needs none.
	Transactions *Transactions
	// GroupLimit is how many units may share a commit.
	GroupLimit int
	// Gather is called before a group is taken, to let others come. Defaults to nothing.
	Gather func()
	// ManyWriters says that the database has as many writers as connections, and that
	// a statement outside a transaction is one. Then only creations form groups, each of
	// which is one statement on Read, and every other unit commits alone.
	ManyWriters bool
	// UnitTimeout bounds a unit once it is under way. Defaults to no bound.
	UnitTimeout time.Duration
	// Rebind turns ? placeholders into the database's own.
	Rebind func(string) string
}

// New returns a Store.
func New(c Config) *Store {
	if c.Queue == nil {
		c.Queue = c.Read
	}
	s := &core{
		backend: c.Backend, statements: c.Backend.Statements(), keys: c.Keys, build: c.Build, read: c.Read, queue: c.Queue,
		rebind: c.Rebind, queued: c.Queued,
		wake: make(chan struct{}, 1), closed: make(chan struct{}), close: new(sync.Once),
	}
	k := newCommitter(&c)
	s.commit, s.drain = k.commit, k.close
	if c.ReadTogether != nil {
		s.readers = newGrouper(readLimit, readLeaders, nil, func(_ context.Context, group []*Read) { responses{s}.readGroup(c.ReadTogether, group) })
	}
	return newStore(s)
}

// Bound returns a store that works in the caller's transaction c, built by
// build. Each unit runs in a savepoint, so that one that fails leaves nothing
// behind in the transaction.
func (s *core) Bound(build Builder, c bun.IConn) *Store {
	bound := *s
	bound.build, bound.read, bound.queue, bound.readers = build, c, c, nil
	bound.commit = func(ctx context.Context, u *Unit) error { return inSavepoint(ctx, s.backend, c, u) }
	return newStore(&bound)
}

// SetClosed makes every later call, and a Wait in progress, fail with
// formsvc.ErrStoreClosed, and returns when the writes that are under way have ended.
func (s *core) SetClosed() {
	s.close.Do(func() { close(s.closed) })
	s.drain()
}

// Closed returns a channel that SetClosed closes.
func (s *core) Closed() <-chan struct{} { return s.closed }

// Woken returns the channel that carries the wake-ups for Wait.
func (s *core) Woken() <-chan struct{} { return s.wake }

// Notify implements formsvc.MaintenanceStore.
func (s *core) Notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if s.queued != nil {
		s.queued()
	}
}

// Scrub implements formsvc.MaintenanceStore for databases whose log is out of reach.
func (s *core) Scrub(ctx context.Context) error { return s.Usable(ctx) }

// ready returns why a call that names these records can't be served, or nil.
// What is no identifier names nothing: so says this check, alike for databases
// that would refuse it, take it for another one or find nothing.
func (s *core) ready(ctx context.Context, named ...formsvc.ID) error {
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
func (s *core) Usable(ctx context.Context) error {
	select {
	case <-s.closed:
		return formsvc.ErrStoreClosed
	default:
		return ctx.Err()
	}
}

// checkIDs is the check for identifiers of records that are to be made.
func checkIDs(ids ...formsvc.ID) error {
	for _, id := range ids {
		if !id.Valid() {
			return fmt.Errorf("bunstore: an identifier that is no canonical UUID: %w", formsvc.ErrInvalid)
		}
	}
	return nil
}

// Ping implements storage.Database.
func (s *core) Ping(ctx context.Context) error { return s.CheckActive(ctx) }

// unit commits a unit that runs a function.
func (s *core) unit(ctx context.Context, do func(ctx context.Context, c bun.IConn) error) error {
	return s.submit(ctx, &Unit{Do: do})
}

// single commits a unit whose function runs one statement where the database
// has transactions of single statements.
func (s *core) single(ctx context.Context, do func(ctx context.Context, c bun.IConn) error) error {
	return s.submit(ctx, &Unit{Do: do, Single: true})
}

// locked makes a query lock the rows that it finds.
func (s *core) locked(q *bun.SelectQuery) *bun.SelectQuery {
	if lock := s.backend.ForUpdate(); lock != "" {
		return q.For(lock)
	}
	return q
}

func (s *core) submit(ctx context.Context, u *Unit) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := raise(s.commit(ctx, u)); err != nil {
		return s.backend.Classify(err)
	}
	if u.Wake {
		s.Notify()
	}
	return nil
}

// Never is the stored form of the zero time.
const Never int64 = -62135596800000000

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

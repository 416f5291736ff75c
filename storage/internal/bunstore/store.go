package bunstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A Store implements formsvc.Store and delivery.Queue on an SQL database. The
// packages sqlite and postgres wrap it.
type Store struct {
	backend Backend
	build   Builder
	read    bun.IConn
	commit  func(context.Context, *Unit) error
	rebind  func(string) string
	wake    chan struct{}
	closed  *atomic.Bool
}

// A Builder makes bun queries; *bun.DB and bun.Tx are builders.
type Builder interface {
	NewSelect() *bun.SelectQuery
	NewInsert() *bun.InsertQuery
	NewUpdate() *bun.UpdateQuery
	NewDelete() *bun.DeleteQuery
}

// Config says what a Store works on.
type Config struct {
	Backend Backend
	Build   Builder
	// Read is where reads go.
	Read bun.IConn
	// Commit runs a unit.
	Commit func(context.Context, *Unit) error
	// Rebind turns ? placeholders into the database's own.
	Rebind func(string) string
}

// New returns a Store.
func New(c Config) *Store {
	return &Store{
		backend: c.Backend, build: c.Build, read: c.Read, commit: c.Commit, rebind: c.Rebind,
		wake: make(chan struct{}, 1), closed: new(atomic.Bool),
	}
}

// Bound returns a store that works in the caller's transaction c, built by
// build. Each unit runs in a savepoint, so that one that fails leaves nothing
// behind in the transaction.
func (s *Store) Bound(build Builder, c bun.IConn) *Store {
	bound := *s
	bound.build, bound.read = build, c
	bound.commit = func(ctx context.Context, u *Unit) error { return inSavepoint(ctx, s.backend, c, u) }
	return &bound
}

// SetClosed makes every later call fail with formsvc.ErrStoreClosed.
func (s *Store) SetClosed() { s.closed.Store(true) }

// Notify wakes whoever waits for deliveries, as a commit with new ones does.
// Call it after committing a transaction that a bound store wrote to.
func (s *Store) Notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// ready returns why a call that names these records can't be served, or nil.
// What is no identifier names nothing: so says this check, alike for databases
// that would refuse it, take it for another one or find nothing.
func (s *Store) ready(ctx context.Context, named ...formsvc.ID) error {
	if s.closed.Load() {
		return formsvc.ErrStoreClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, id := range named {
		if _, ok := formsvc.ParseID(string(id)); !ok {
			return formsvc.ErrNotFound
		}
	}
	return nil
}

// checkIDs is the check for identifiers of records that are to be made.
func checkIDs(ids ...formsvc.ID) error {
	for _, id := range ids {
		if _, ok := formsvc.ParseID(string(id)); !ok {
			return fmt.Errorf("bunstore: an identifier that is no canonical UUID: %w", formsvc.ErrInvalid)
		}
	}
	return nil
}

// Ping returns nil when the database answers and has a schema.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	var version int
	err := s.read.QueryRowContext(ctx, "SELECT max(version) FROM formsvc_schema").Scan(&version)
	if err != nil {
		return s.backend.Classify(err)
	}
	return nil
}

// unit commits a unit that runs a function.
func (s *Store) unit(ctx context.Context, do func(ctx context.Context, c bun.IConn) error) error {
	return s.submit(ctx, &Unit{Do: do})
}

func (s *Store) submit(ctx context.Context, u *Unit) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	err := s.commit(ctx, u)
	if u.panicked != nil {
		// The caller's function panicked, perhaps in the goroutine of whoever led
		// the group: it surfaces here, in the caller's.
		panic(u.panicked)
	}
	if err != nil {
		return s.backend.Classify(err)
	}
	if u.Wake {
		s.Notify()
	}
	return nil
}

// RunUnits runs a group of units inside the transaction that c is in. Units
// that fail by themselves get their error; an error that RunUnits returns
// means that the transaction must be rolled back.
func RunUnits(ctx context.Context, b Backend, c bun.IConn, group []*Unit) error {
	creations := make([]*Unit, 0, len(group))
	for _, u := range group {
		u.Err, u.Wake = nil, false
		if u.Creation != nil {
			creations = append(creations, u)
		}
	}
	if len(creations) > 0 {
		if err := b.CreateResponses(ctx, c, creations); err != nil {
			return err
		}
	}
	for _, u := range group {
		if u.Creation != nil {
			continue
		}
		if len(group) == 1 {
			// Alone in its transaction, it needs no savepoint.
			return u.Attempt(ctx, c)
		}
		if err := savepoint(ctx, c, u); err != nil {
			return err
		}
	}
	return nil
}

// savepoint runs one unit so that its failure undoes only itself.
func savepoint(ctx context.Context, c bun.IConn, u *Unit) error {
	if _, err := c.ExecContext(ctx, "SAVEPOINT formsvc_unit"); err != nil {
		return err
	}
	u.Err = u.Attempt(ctx, c)
	if u.Err != nil {
		u.Wake = false
		if _, err := c.ExecContext(ctx, "ROLLBACK TO SAVEPOINT formsvc_unit"); err != nil {
			return fmt.Errorf("bunstore: %w (after %w)", err, u.Err)
		}
	}
	_, err := c.ExecContext(ctx, "RELEASE SAVEPOINT formsvc_unit")
	return err
}

// inSavepoint runs a unit of a bound store.
func inSavepoint(ctx context.Context, b Backend, c bun.IConn, u *Unit) error {
	if creation := u.Creation; creation != nil {
		u = &Unit{Do: func(ctx context.Context, c bun.IConn) error {
			inner := &Unit{Creation: creation}
			if err := b.CreateResponses(ctx, c, []*Unit{inner}); err != nil {
				return err
			}
			return inner.Err
		}}
	}
	if err := savepoint(ctx, c, u); err != nil {
		return err
	}
	return u.Err
}

// NewGroupCommit returns a function that commits units in groups of at most
// limit, each group by run, and one that refuses new units and waits for the
// last. run must set Err of every unit.
func NewGroupCommit(limit int, run func([]*Unit)) (commit func(context.Context, *Unit) error, drain func()) {
	g := newCommitter(limit, run)
	return g.commit, g.close
}

// Never is the stored form of the zero time.
const Never int64 = -62135596800000000

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

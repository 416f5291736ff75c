package bunstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A Unit is one write: all of it happens, or none.
type Unit struct {
	// Exactly one of these says what to write. Creation is kept apart since a
	// group writes all its creations with the same few statements.
	Creation *Creation
	Do       func(ctx context.Context, c bun.IConn) error
	// Single says that Do is one statement, or atomic by itself, on a database
	// where statements are transactions; else it is run in one.
	Single bool

	Err  error // what became of the unit
	Wake bool  // whether the unit left deliveries to send

	member
}

// A Creation is a new response.
type Creation struct {
	Response        formsvc.Response
	CampaignVersion int64
	Change          formsvc.Change
}

// A committer commits units. It owns the way of a unit from its caller to the commit
// and back; a backend has the statements, and judges errors.
//
// Each unit gets an error of its own. When a group fails as a whole, or panics, each
// unit is tried alone, so that the one at fault fails alone; not when the commit itself
// failed, since nobody knows what became of it. What a unit panics with is raised again
// where it was submitted; what a commit panics with, where its first unit was.
type committer struct {
	*Config

	groups *grouper[*Unit]
	alone  *grouper[*Unit] // nil: all share
}

func newCommitter(c *Config) *committer {
	k := &committer{Config: c}
	k.groups = newGrouper(k.GroupLimit, 1, k.Gather, func(_ context.Context, group []*Unit) {
		// The units' own contexts have had their say: a group that is under way is
		// finished. A context that can't end also spares the driver a goroutine for
		// every statement.
		k.run(context.Background(), group)
	})
	if k.ManyWriters {
		k.alone = newGrouper(1, math.MaxInt, nil, k.run)
	}
	return k
}

// commit returns when u has run. When ctx ends before u is under way, nothing of it happens.
func (k *committer) commit(ctx context.Context, u *Unit) error {
	g := k.groups
	if k.alone != nil && u.Creation == nil {
		g = k.alone
	}
	if err := g.do(ctx, u); err != nil {
		return err
	}
	return u.Err
}

// close refuses new units and returns when the waiting ones have run.
func (k *committer) close() {
	k.groups.close()
	if k.alone != nil {
		k.alone.close()
	}
}

// errAbandoned is what units get whose group is left by runtime.Goexit.
var errAbandoned = errCommit(errors.New("bunstore: the goroutine that was to commit has ended"))

// run commits a group and sets Err and Wake of its units.
func (k *committer) run(ctx context.Context, group []*Unit) {
	err := errAbandoned
	defer func() {
		if err != nil {
			fail(group, err)
		}
	}()
	err = k.try(ctx, group)
	if err == nil || len(group) == 1 || errors.Is(err, formsvc.ErrUnknownOutcome) {
		return
	}
	fail(group, errAbandoned)
	err = nil
	for i := range group {
		k.run(ctx, group[i:i+1])
	}
}

func fail(group []*Unit, err error) {
	for _, u := range group {
		u.Err, u.Wake = err, false
		if p, ok := errors.AsType[*panicError](err); ok { // it is raised once
			err = errCommit(errors.New(p.Error()))
		}
	}
}

// try commits a group as a whole. With an error of errCommit nobody knows whether it
// did, with another one nothing of the group happened.
func (k *committer) try(ctx context.Context, group []*Unit) error {
	if k.ManyWriters && (group[0].Creation != nil || group[0].Single) {
		c := k.Queue
		if group[0].Creation != nil {
			c = k.Read
		}
		return k.underWay(ctx, func(ctx context.Context) error {
			err := k.write(ctx, c, group)
			if err == nil || k.Transactions.Undone(err) {
				return err
			}
			return errCommit(err)
		})
	}
	return k.Transactions.with(ctx, func(c bun.IConn) (lost bool, err error) {
		err = k.underWay(ctx, func(ctx context.Context) error {
			lost, err = k.Transactions.on(ctx, c, func() error { return k.write(ctx, c, group) })
			return err
		})
		return lost || slices.ContainsFunc(group, func(u *Unit) bool { return isPanic(u.Err) }), err
	})
}

// underWay runs what a caller waits for the outcome of: the end of ctx doesn't end it.
func (k *committer) underWay(ctx context.Context, try func(ctx context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	if k.UnitTimeout == 0 {
		return k.Transactions.Retried(func() error { return try(ctx) })
	}
	ctx, cancel := context.WithTimeout(ctx, k.UnitTimeout)
	defer cancel()
	err := k.Transactions.Retried(func() error { return try(ctx) })
	if errors.Is(err, context.DeadlineExceeded) {
		return Classified(formsvc.ErrUnavailable, err)
	}
	return err
}

// write runs a group of units inside whatever transaction c is in. Units that fail by
// themselves get their error; with an error that it returns none of them has happened.
func (k *committer) write(ctx context.Context, c bun.IConn, group []*Unit) error {
	creations := make([]*Unit, 0, len(group))
	for _, u := range group {
		u.Err, u.Wake = nil, false
		if u.Creation != nil {
			creations = append(creations, u)
		}
	}
	if len(creations) > 0 {
		err := attempt(func() error { return k.Backend.CreateResponses(ctx, c, creations) })
		if err != nil {
			return err
		}
	}
	for _, u := range group {
		if u.Creation != nil {
			continue
		}
		if len(group) == 1 {
			// Alone in its transaction, it needs no savepoint.
			return attempt(func() error { return u.Do(ctx, c) })
		}
		if err := savepoint(ctx, c, u); err != nil {
			return err
		}
	}
	return nil
}

// savepoint runs one unit so that its failure undoes only itself.
func savepoint(ctx context.Context, c bun.IConn, u *Unit) error {
	if err := exec(ctx, c, "SAVEPOINT formsvc_unit"); err != nil {
		return err
	}
	u.Err = attempt(func() error { return u.Do(ctx, c) })
	if u.Err != nil {
		u.Wake = false
		if err := exec(ctx, c, "ROLLBACK TO SAVEPOINT formsvc_unit"); err != nil {
			return fmt.Errorf("bunstore: %w (after %w)", err, u.Err)
		}
	}
	return exec(ctx, c, "RELEASE SAVEPOINT formsvc_unit")
}

// inSavepoint runs a unit of a bound store.
func inSavepoint(ctx context.Context, b Backend, c bun.IConn, u *Unit) error {
	if creation := u.Creation; creation != nil {
		u.Do = func(ctx context.Context, c bun.IConn) error { return createAlone(ctx, b, c, creation) }
	}
	if err := savepoint(ctx, c, u); err != nil {
		return err
	}
	return u.Err
}

// createAlone writes a response as a part of the unit that c is in.
func createAlone(ctx context.Context, b Backend, c bun.IConn, creation *Creation) error {
	u := &Unit{Creation: creation}
	if err := b.CreateResponses(ctx, c, []*Unit{u}); err != nil {
		return err
	}
	return u.Err
}

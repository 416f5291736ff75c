package bunstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/uptrace/bun"
)

// Transactions are what a backend supplies to run transactions that write.
type Transactions struct {
	// Conn returns a connection for exclusive use until giveBack is called. lost says
	// that it may still be in a transaction.
	Conn func(ctx context.Context) (c bun.IConn, giveBack func(lost bool), err error)
	// Begin and Commit are the statements around a transaction.
	Begin, Commit string
	// Undone reports whether a failed commit certainly changed nothing.
	Undone func(error) bool
	// Retryable reports whether the database rolled back because of other transactions.
	// Nil means never.
	Retryable func(error) bool
	// Committed is called after each commit. Nil does nothing.
	Committed func()
}

// rollbackTimeout limits a rollback, after which the connection counts as lost.
const rollbackTimeout = 5 * time.Second

// Run runs a function in a transaction.
func (t *Transactions) Run(ctx context.Context, do func(ctx context.Context, c bun.IConn) error) error {
	return raise(t.with(ctx, func(c bun.IConn) (lost bool, err error) {
		return t.on(ctx, c, func() error { return do(ctx, c) })
	}))
}

// with runs a function with a connection. The function reports whether the connection is
// lost.
func (t *Transactions) with(ctx context.Context, do func(c bun.IConn) (lost bool, err error)) error {
	c, giveBack, err := t.Conn(ctx)
	if err != nil {
		return err
	}
	lost := true
	defer func() { giveBack(lost) }()
	lost, err = do(c)
	return err
}

// on runs a function in a transaction on c. An error is of errCommit if the outcome is
// unknown. However the function ends, the transaction is over or the connection lost.
func (t *Transactions) on(ctx context.Context, c bun.IConn, do func() error) (lost bool, err error) {
	lost = true
	defer func() {
		if !lost {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		// After a disk error a database may already have rolled back, so that this fails;
		// a connection that is lost for that reason is soon replaced.
		lost = exec(ctx, c, "ROLLBACK") != nil || isPanic(err)
	}()
	if err := exec(ctx, c, t.Begin); err != nil {
		return isPanic(err), err
	}
	if err := do(); err != nil {
		return true, err
	}
	if err := exec(ctx, c, t.Commit); err != nil {
		if !t.Undone(err) {
			err = errCommit(err)
		}
		return true, err
	}
	if t.Committed != nil {
		t.Committed()
	}
	return false, nil
}

// attempts is how often a transaction is tried if the database keeps rolling it back
// because of others.
const attempts = 4

// Retried retries a transaction that the database rolled back because of others.
func (t *Transactions) Retried(try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if t.Retryable == nil || !t.Retryable(err) || n == attempts {
			return err
		}
		time.Sleep(rand.N(time.Duration(n) * 10 * time.Millisecond)) //nolint:gosec // jitter
	}
}

// Borrow takes a connection of a pool for [Transactions].Conn. It closes a lost one in a
// goroutine: after a panic of a driver, database/sql may wait forever for the query.
func Borrow(ctx context.Context, db *sql.DB) (bun.IConn, func(lost bool), error) {
	c, err := db.Conn(ctx)
	return c, func(lost bool) {
		if lost {
			go func() { _ = c.Raw(func(any) error { return driver.ErrBadConn }) }()
			return
		}
		_ = c.Close()
	}, err
}

// exec runs a statement without arguments.
func exec(ctx context.Context, c bun.IConn, statement string) error {
	return attempt(func() error {
		_, err := c.ExecContext(ctx, statement)
		return err
	})
}

// A panicError carries a panic to the caller it belongs to.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("bunstore: panic: %v", p.value) }

func isPanic(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}

// raise panics again with the value of a panicError, perhaps in another goroutine than
// the one that panicked. It returns other errors.
func raise(err error) error {
	if p, ok := errors.AsType[*panicError](err); ok {
		panic(p.value)
	}
	return err
}

// attempt runs a function and returns a panic as an error.
func attempt(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
		}
	}()
	return do()
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// A writer lends the connection for writes to one caller at a time.
type writer interface {
	// take is bunstore.Transactions.Conn.
	take(ctx context.Context) (c bun.IConn, giveBack func(lost bool), err error)
	close() error
}

// pinnedWriter writes on its own connection and keeps the connection's statements.
type pinnedWriter struct {
	mu   sync.Mutex
	conn *sql.Conn
	c    *bunstore.Prepared // on conn
}

func (w *pinnedWriter) take(context.Context) (bun.IConn, func(bool), error) {
	w.mu.Lock()
	return w.c, func(bool) { w.mu.Unlock() }, nil
}

func (w *pinnedWriter) close() error { return errors.Join(w.c.Close(), w.conn.Close()) }

// poolWriter borrows a connection of the caller's pool for each transaction.
type poolWriter struct{ db *sql.DB }

// errNoConnection means that the caller's pool had no free connection in time.
var errNoConnection = errors.New("sqlite: no connection to write on")

// connTimeout limits the wait for a connection, so that an exhausted pool of the caller
// doesn't block requests forever.
const connTimeout = 10 * time.Second

func (w *poolWriter) take(ctx context.Context) (bun.IConn, func(bool), error) {
	wait, cancel := context.WithTimeout(ctx, connTimeout)
	defer cancel()
	c, giveBack, err := bunstore.Borrow(wait, w.db)
	if err != nil {
		err = fmt.Errorf("%w: %w", errNoConnection, err)
	}
	return c, giveBack, err
}

func (w *poolWriter) close() error { return nil }

// alone runs a function on the connection for writes, without a transaction.
func alone(ctx context.Context, w writer, do func(c bun.IConn) error) error {
	c, giveBack, err := w.take(ctx)
	if err != nil {
		return err
	}
	defer giveBack(false)
	return do(c)
}

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

// writer runs functions in write transactions, one at a time.
type writer interface {
	inTx(ctx context.Context, do func(c bun.IConn) error) error
	// alone runs a function on the connection without a transaction.
	alone(ctx context.Context, do func(c bun.IConn) error) error
	close() error
}

// pinnedWriter writes on a connection of its own and keeps its statements.
type pinnedWriter struct {
	mu   sync.Mutex
	conn *sql.Conn
	c    *bunstore.Prepared // on conn
}

func (w *pinnedWriter) inTx(ctx context.Context, do func(c bun.IConn) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return inTx(ctx, w.c, do)
}

func (w *pinnedWriter) alone(_ context.Context, do func(c bun.IConn) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return do(w.conn)
}

func (w *pinnedWriter) close() error { return errors.Join(w.c.Close(), w.conn.Close()) }

// poolWriter borrows a connection of the caller's pool for each transaction.
type poolWriter struct{ db *sql.DB }

// errNoConnection means that the caller's pool gave no connection in time.
var errNoConnection = errors.New("sqlite: no connection to write on")

// connTimeout bounds the wait for one, so that a pool that the caller has used
// up stops no request for ever.
const connTimeout = 10 * time.Second

func (w *poolWriter) inTx(ctx context.Context, do func(c bun.IConn) error) error {
	return w.alone(ctx, func(c bun.IConn) error { return inTx(ctx, c, do) })
}

func (w *poolWriter) alone(ctx context.Context, do func(c bun.IConn) error) (err error) {
	wait, cancel := context.WithTimeout(ctx, connTimeout)
	defer cancel()
	c, err := w.db.Conn(wait)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoConnection, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return do(c)
}

func (w *poolWriter) close() error { return nil }

// inTx takes the write lock before it reads anything: a transaction that read
// first could not wait for the lock, SQLite would refuse it at once.
func inTx(ctx context.Context, c bun.IConn, do func(c bun.IConn) error) error {
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do(c)
	if err == nil {
		if _, err = c.ExecContext(ctx, "COMMIT"); err == nil {
			return nil
		}
		// On a full disk the mark that commits, which is written last, is missing.
		if !isFull(err) {
			err = bunstore.ErrCommit(err)
		}
	}
	// SQLite may have rolled back by itself after a fault of the disk, so that
	// this one fails; either way the transaction is over.
	_, _ = c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// writeGroup commits a group of units. When the group fails as a whole, each
// unit is tried alone, so that the one at fault fails alone; not when the
// commit itself failed, since nobody knows what became of it.
func (s *Store) writeGroup(group []*bunstore.Unit) {
	// The units' own contexts have had their say: a group that is under way is
	// finished. A context that can't end also spares the driver a goroutine for
	// every statement.
	ctx := context.Background()
	err := s.writer.inTx(ctx, func(c bun.IConn) error { return bunstore.RunUnits(ctx, s.backend, c, group) })
	switch {
	case err == nil:
		s.checkpoints.committed()
	case len(group) == 1 || bunstore.IsCommitError(err):
		for _, u := range group {
			u.Err, u.Wake = err, false
		}
	default:
		for i := range group {
			s.writeGroup(group[i : i+1])
		}
	}
}

package postgres

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// writeGroup writes a group of new responses. When the statement fails as a
// whole, each is tried alone, so that the one at fault fails alone; not when
// the outcome is unknown.
func (s *Store) writeGroup(group []*bunstore.Unit) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	err := retried(func() error {
		for _, u := range group {
			u.Err, u.Wake = nil, false
		}
		return s.backend.CreateResponses(ctx, s.hot, group)
	})
	switch {
	case err == nil:
	case !undone(err):
		fail(group, bunstore.ErrCommit(err))
	case len(group) == 1:
		fail(group, err)
	default:
		for i := range group {
			s.writeGroup(group[i : i+1])
		}
	}
}

func fail(group []*bunstore.Unit, err error) {
	for _, u := range group {
		u.Err, u.Wake = err, false
	}
}

// attempts is how often a unit is tried when others make the server undo it.
const attempts = 4

// retried tries again what the server undid because of others.
func retried(try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if !retryable(err) || n == attempts {
			return err
		}
		time.Sleep(rand.N(time.Duration(n) * 10 * time.Millisecond)) //nolint:gosec // jitter
	}
}

// writeAlone runs a unit in a transaction of its own: Postgres has as many
// writers as connections, and shares the flush of its log among them.
func (s *Store) writeAlone(ctx context.Context, u *bunstore.Unit) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return formsvc.ErrStoreClosed
	}
	s.units.Add(1)
	s.mu.Unlock()
	defer s.units.Done()

	try := s.trySingle
	if !u.Single {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		try = func(ctx context.Context, u *bunstore.Unit) error { return s.try(ctx, conn, u) }
	}
	// From here on the unit is under way and its caller is told what became of it.
	unit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	err := retried(func() error { return try(unit, u) })
	if errors.Is(err, context.DeadlineExceeded) {
		return bunstore.Classified(formsvc.ErrUnavailable, err)
	}
	return err
}

// trySingle runs a unit of one statement, which is a transaction by itself.
func (s *Store) trySingle(ctx context.Context, u *bunstore.Unit) error {
	u.Err, u.Wake = nil, false
	err := u.Attempt(ctx, s.queue)
	if err == nil || undone(err) {
		return err
	}
	return bunstore.ErrCommit(err)
}

func (s *Store) try(ctx context.Context, conn *sql.Conn, u *bunstore.Unit) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	u.Err, u.Wake = nil, false
	if err := u.Attempt(ctx, tx); err != nil {
		_ = tx.Rollback() // the connection is gone otherwise, and with it the transaction
		return err
	}
	if err := tx.Commit(); err != nil {
		if undone(err) {
			return err
		}
		return bunstore.ErrCommit(err)
	}
	return nil
}

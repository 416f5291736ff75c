package bunstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// The states of a database; see the table formsvc_identity.
const (
	Active = "active"
	Moved  = "moved"
)

// A State says what data a database has, and whether it may be used.
type State struct {
	Identity string
	State    string
	Peer     string // where the data of a moved database is, or came from if that one isn't marked yet
	Since    int64
}

// ReadState reads the state.
func ReadState(ctx context.Context, c bun.IConn) (s State, err error) {
	err = c.QueryRowContext(ctx, "SELECT identity, state, peer, since FROM formsvc_identity WHERE id = 1").
		Scan(&s.Identity, &s.State, &s.Peer, &s.Since)
	return s, err
}

// CheckActive fails with formsvc.ErrMoved if the data was copied to another database. The
// error says where it is. Open calls it.
func (s *Store) CheckActive(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	state, err := ReadState(ctx, s.read)
	if err != nil {
		return s.backend.Classify(err)
	}
	return state.Refuse()
}

// Refuse returns why the database must not be used, or nil.
func (s *State) Refuse() error {
	switch s.State {
	case Active:
		return nil
	case Moved:
		return fmt.Errorf("%w: since %s its data is in %s; use that one", formsvc.ErrMoved, fromMicros(s.Since).Format(time.RFC3339), s.Peer)
	}
	return errors.New("bunstore: the database is in a state that this release does not know: " + s.State)
}

// makeIdentity gives a database an identity unless it has one. If several nodes start at
// once, the first one's identity is kept.
func makeIdentity(ctx context.Context, c bun.IConn) error {
	now := time.Now()
	_, err := c.ExecContext(ctx, fmt.Sprintf("INSERT INTO formsvc_identity (id, identity, state, peer, since) "+
		"VALUES (1, '%s', 'active', '', %d) ON CONFLICT (id) DO NOTHING", formsvc.NewID(now), micros(now)))
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	return nil
}

// Identity implements formsvc.MaintenanceStore. Since [formsvc.Service.Ready] asks for it, it fails where nothing can be
// written: a lock can't be taken on a standby.
func (s *Store) Identity(ctx context.Context) (formsvc.ID, error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	var id string
	query := "SELECT identity FROM formsvc_identity WHERE id = 1"
	if s.dialect.ManyWriters {
		query += " FOR KEY SHARE"
	}
	if err := s.read.QueryRowContext(ctx, query).Scan(&id); err != nil {
		return "", s.notFound(err)
	}
	return formsvc.ID(id), nil
}

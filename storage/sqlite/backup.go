package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/internal/disk"
)

// Backup copies the database, as it was at one moment of the call, to a new file at path, readable only by its owner, with
// VACUUM INTO. Writes and reads continue meanwhile. When Backup returns nil, the copy is complete and on disk; after an error
// there is no file at path. If path exists, the error is fs.ErrExist. Encrypted values stay encrypted: the copy needs the keys.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.records.Usable(ctx); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller names the file
	if err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	pool := s.pool
	if s.path != "" {
		// The store's own connections are for requests.
		if pool, err = sql.Open("sqlite", dsn(s.path, s.options)); err != nil {
			return errors.Join(err, f.Close(), os.Remove(path))
		}
		defer func() { _ = pool.Close() }()
	}
	_, err = pool.ExecContext(ctx, "VACUUM INTO ?", path) // which accepts an empty file
	if err = errors.Join(s.backend.Classify(err), f.Sync(), f.Close()); err == nil {
		err = disk.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("sqlite: backup: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// Restored makes the feed of a database that was restored from a backup continue after
// anything that was read of it. Call it before the database is used. Readers of the feed
// may have positions beyond the restored data; without this call they would miss as many
// new events as were lost. Calling it again does no harm.
func (s *Store) Restored(ctx context.Context) error {
	err := s.tx.Run(ctx, func(ctx context.Context, c bun.IConn) error {
		_, err := c.ExecContext(ctx, MoveFeed(fmt.Sprintf("(SELECT coalesce(max(seq), 0) + %d FROM formsvc_events)", bunstore.LostPositions)))
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: restored: %w", s.backend.Classify(err))
	}
	return nil
}

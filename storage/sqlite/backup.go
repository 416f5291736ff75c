package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// BackupOptions are the optional settings of [Store.Backup].
type BackupOptions struct {
	// Progress is called now and then with the bytes copied and the bytes in total.
	// Defaults to nothing.
	Progress func(done, total int64)
	// Snapshot is called before the first page is copied, with the store as it is in
	// the copy. It may only read, and the store must not be used after it returns. An
	// error ends the backup and is returned. Defaults to nothing.
	Snapshot func(context.Context, formsvc.FileStore) error
}

const (
	// backupPages is how many pages are copied between two checks of the context.
	backupPages = 1024
	// backupFlush is after how many pages the copy is flushed to disk. A single flush at
	// the end would delay commits by a third of a second.
	backupFlush = 4 * backupPages
)

// Backup copies the database, as it was at one moment at the beginning of the call, to a
// new file at path, readable only by its owner. Writes and reads continue meanwhile. The
// log grows until Backup returns, because the copy needs it. When Backup returns nil, the
// copy is complete and on disk. After an error there is no file at path, unless the
// process ended. If path exists, the error is fs.ErrExist.
//
// Values encrypted in the database are encrypted in the copy: you need the keys to use
// it.
//
// On a store of [New] it occupies a connection of the caller's pool. Several backups may
// run at once.
func (s *Store) Backup(ctx context.Context, path string, opts *BackupOptions) error {
	var o BackupOptions
	if opts != nil {
		o = *opts
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	if err := s.records.Usable(ctx); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller names the file
	if err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	if err = s.backup(ctx, f, &o); err == nil {
		// The driver wrote it without waiting for the disk: only this counts.
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("sqlite: backup: %w", errors.Join(s.backend.Classify(err), os.Remove(path)))
	}
	return nil
}

func (s *Store) backup(ctx context.Context, to *os.File, o *BackupOptions) (err error) {
	pool := s.pool
	if s.path != "" {
		// The store's own connections are for requests.
		if pool, err = sql.Open("sqlite", dsn(s.path, s.options)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, pool.Close()) }()
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	// A copy in steps starts again whenever somebody writes between two steps, unless its
	// connection is in a read transaction.
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	defer func() {
		_, end := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = errors.Join(err, end)
	}()
	var tables int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if o.Snapshot != nil {
		build := bun.NewDB(nil, sqlitedialect.New())
		bound := newStore(&poolWriter{}, nil, nil, s.options).records.Bound(build, conn)
		if err := o.Snapshot(ctx, bound); err != nil {
			return err
		}
	}
	return conn.Raw(func(driver any) error { return copyPages(ctx, driver, to, o.Progress) })
}

// copyPages copies the snapshot that the connection sees to the file.
func copyPages(ctx context.Context, driver any, to *os.File, progress func(done, total int64)) (err error) {
	source, ok := driver.(interface {
		NewBackup(to string) (*sqlite.Backup, error)
	})
	if !ok {
		return fmt.Errorf("the driver %T makes no backups", driver)
	}
	u := url.URL{Scheme: "file", Path: to.Name(), RawQuery: url.Values{"_pragma": {"synchronous(0)", "journal_mode(OFF)"}}.Encode()}
	b, err := source.NewBackup(u.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Finish()) }()
	for more, pages := true, 0; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if more, err = b.Step(backupPages); err != nil {
			return err
		}
		if pages += backupPages; pages%backupFlush == 0 {
			if err := to.Sync(); err != nil {
				return err
			}
		}
		if progress != nil {
			all := int64(b.PageCount())
			progress((all-int64(b.Remaining()))*pageSize, all*pageSize)
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the directory of a file that the caller names
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Restored makes the feed of a database that was restored from a backup continue after
// anything that was read of it. Call it before the database is used. Readers of the feed
// may have positions beyond the restored data; without this call they would miss as many
// new events as were lost. Calling it again does no harm.
func (s *Store) Restored(ctx context.Context) error {
	err := s.tx.Run(ctx, func(ctx context.Context, c bun.IConn) error {
		if _, err := c.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) SELECT 'formsvc_events', 0 "+
			"WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'formsvc_events')"); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, fmt.Sprintf("UPDATE sqlite_sequence SET seq = seq + %d WHERE name = 'formsvc_events'",
			bunstore.LostPositions))
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: restored: %w", s.backend.Classify(err))
	}
	return nil
}

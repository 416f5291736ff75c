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
	"modernc.org/sqlite"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// BackupOptions are the optional settings of [Store.Backup].
type BackupOptions struct {
	// Progress is called now and then with how many bytes are copied and how many
	// there are. Defaults to nothing.
	Progress func(done, total int64)
}

const (
	// backupPages is how many pages are copied between two looks at the context.
	backupPages = 1024
	// backupFlush is after how many pages the copy goes to the disk: all at once, at the
	// end, would hold up for a third of a second whoever commits.
	backupFlush = 4 * backupPages
)

// Backup copies the database, as it is at one moment at the beginning of the call, to a
// new file at path, readable by its owner only. Writers and readers go on meanwhile; the
// log grows for as long, since the copy needs what is in it. When Backup returns nil the
// copy is whole and on disk. Otherwise there is no file at path, unless the process
// ended. A file that is there already is an error that is fs.ErrExist.
//
// What is encrypted in the database is so in the copy: the keys are needed to use it.
//
// On a store of [New] it takes a connection of the caller's pool for as long as it
// works. Several may run at once.
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
	if err = s.backup(ctx, f, o.Progress); err == nil {
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

func (s *Store) backup(ctx context.Context, to *os.File, progress func(done, total int64)) (err error) {
	pool := s.pool
	if s.path != "" {
		// Those of the store are for requests.
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
	// A copy in steps would begin anew whenever somebody writes between two of them,
	// but not while its connection reads the database as it was.
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
	return conn.Raw(func(driver any) error { return copyPages(ctx, driver, to, progress) })
}

// copyPages copies what the connection sees to the file.
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

// Restored makes the feed of a database that was brought back from a backup go on behind
// what anybody has read of it. Call it before anybody uses the database: whoever read the
// feed since the backup has a position beyond what is in it, and would otherwise miss as
// many new events as were lost. To call it again does no harm.
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

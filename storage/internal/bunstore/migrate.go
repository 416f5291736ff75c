package bunstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// A Migration is one step of the schema.
type Migration struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: not yet
	sql       string
}

// ErrSchemaNewer means that the database was migrated by a newer release than
// this one, which must not write to it.
var ErrSchemaNewer = errors.New("the database schema is newer than this release")

// Migrations reads files named NNNN_name.sql.
func Migrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	list := make([]Migration, 0, len(names))
	for i, file := range names {
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("bunstore: migration %s: want number %d", file, i+1)
		}
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		list = append(list, Migration{Version: version, Name: name, sql: string(text)})
	}
	return list, nil
}

// Steps brings the schema up to date. inTx runs a function in a transaction
// that excludes every other migrating process. Each migration and the record of
// it commit together, so that one which is cut off was never there.
func Steps(
	ctx context.Context, list []Migration, inTx func(context.Context, func(context.Context, bun.IConn) error) error,
) error {
	for done := false; !done; {
		err := inTx(ctx, func(ctx context.Context, c bun.IConn) error {
			if _, err := c.ExecContext(ctx, createSchema); err != nil {
				return err
			}
			applied, err := applied(ctx, c)
			if err != nil {
				return err
			}
			if len(applied) > len(list) {
				return fmt.Errorf("%w: it has version %d, this release knows %d", ErrSchemaNewer, len(applied), len(list))
			}
			if done = len(applied) == len(list); done {
				return nil
			}
			return list[len(applied)].apply(ctx, c)
		})
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
	return nil
}

func (m *Migration) apply(ctx context.Context, c bun.IConn) error {
	if _, err := c.ExecContext(ctx, m.sql); err != nil {
		return fmt.Errorf("version %d (%s): %w", m.Version, m.Name, err)
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf(
		"INSERT INTO formsvc_schema (version, applied_at) VALUES (%d, %d)", m.Version, micros(time.Now())))
	return err
}

const createSchema = `CREATE TABLE IF NOT EXISTS formsvc_schema (
  version INTEGER PRIMARY KEY, applied_at BIGINT NOT NULL)`

// applied returns when each version was applied, from 1 on.
func applied(ctx context.Context, c bun.IConn) (times []time.Time, err error) {
	rows, err := c.QueryContext(ctx, "SELECT applied_at FROM formsvc_schema ORDER BY version")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var at int64
		if err := rows.Scan(&at); err != nil {
			return nil, err
		}
		times = append(times, fromMicros(at))
	}
	return times, rows.Err()
}

// Status returns every migration this release knows, and when it was applied.
// It changes nothing. exists is a query that tells whether the table that
// records them is there.
func Status(ctx context.Context, list []Migration, c bun.IConn, exists string) ([]Migration, error) {
	var there bool
	if err := c.QueryRowContext(ctx, exists).Scan(&there); err != nil || !there {
		return list, err
	}
	times, err := applied(ctx, c)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for i := range min(len(times), len(list)) {
		list[i].AppliedAt = times[i]
	}
	return list, nil
}

// Version returns which version the schema has, 0 for none.
func Version(ctx context.Context, c bun.IConn, exists string) (version int, err error) {
	var there bool
	if err := c.QueryRowContext(ctx, exists).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = c.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM formsvc_schema").Scan(&version)
	return version, err
}

// Strings returns the one column of a query's rows.
func Strings(ctx context.Context, c bun.IConn, query string, args ...any) (list []string, err error) {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

package bunstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	SHA256    string    // of its text, in hex
	AppliedAt time.Time // zero: not applied
	// Other says how the applied step differs from this one; "" if no difference is
	// known.
	Other string

	sql   string
	noted bool // the database has recorded SHA256
}

// ErrSchemaNewer means that a newer release has migrated the database. This release must
// not write to it.
var ErrSchemaNewer = errors.New("the database schema is newer than this release")

// ErrSchemaOther means that another build has applied other steps under the same numbers.
// This build must not use the database.
var ErrSchemaOther = errors.New("another build made the schema of this database")

// Migrations reads the files named NNNN_name.sql in a directory.
func Migrations(files fs.FS, dir string) ([]Migration, error) {
	names, err := fs.Glob(files, path.Join(dir, "*.sql"))
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
		// Line endings may have been converted by git; the checksum must not depend on
		// them.
		sql := strings.ReplaceAll(string(text), "\r\n", "\n")
		sum := sha256.Sum256([]byte(sql))
		list = append(list, Migration{Version: version, Name: name, SHA256: hex.EncodeToString(sum[:]), sql: sql})
	}
	return list, nil
}

// Steps migrates the schema to this release. columns is the query of the database, such as
// [ColumnsOfPostgres]. inTx runs a function in a transaction that excludes all other
// migrating processes. Each migration and its record commit together, so an interrupted one
// leaves no trace. Steps doesn't change a database with steps of another build.
func Steps(
	ctx context.Context, list []Migration, columns string,
	inTx func(context.Context, func(context.Context, bun.IConn) error) error,
) error {
	for done := false; !done; {
		err := inTx(ctx, func(ctx context.Context, c bun.IConn) error {
			schema, err := ReadSchema(ctx, c, columns)
			if err != nil {
				return err
			}
			if len(schema.Rows) > len(list) {
				return fmt.Errorf("%w: it has version %d, this release knows %d", ErrSchemaNewer, len(schema.Rows), len(list))
			}
			list := schema.Examine(list)
			if err := refuseOthers(list); err != nil {
				return err
			}
			if err := schema.note(ctx, c, list); err != nil {
				return err
			}
			if done = len(schema.Rows) == len(list); done {
				return nil
			}
			return list[len(schema.Rows)].apply(ctx, c)
		})
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
	return nil
}

// refuseOthers returns an error if a step was applied by another build.
func refuseOthers(list []Migration) error {
	for i := range list {
		if m := &list[i]; m.Other != "" {
			return fmt.Errorf("%w: its step %d (%s) %s; nothing was changed: use the build that made it, or give this one an empty database",
				ErrSchemaOther, m.Version, m.Name, m.Other)
		}
	}
	return nil
}

func (m *Migration) apply(ctx context.Context, c bun.IConn) error {
	if _, err := c.ExecContext(ctx, m.sql); err != nil {
		return fmt.Errorf("version %d (%s): %w", m.Version, m.Name, err)
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf(
		"INSERT INTO formsvc_schema (version, applied_at, sha256) VALUES (%d, %d, '%s')", m.Version, micros(time.Now()), m.SHA256))
	return err
}

// Status returns every migration that this release knows, when it was applied, and
// whether the applied one is another build's. It changes nothing.
func Status(ctx context.Context, list []Migration, c bun.IConn, columns string) ([]Migration, error) {
	schema, err := ReadSchema(ctx, c, columns)
	if err != nil {
		return nil, err
	}
	return schema.Examine(list), nil
}

// Version returns the schema's version, 0 if it has none.
func Version(ctx context.Context, c bun.IConn, exists string) (version int, err error) {
	var there bool
	if err := c.QueryRowContext(ctx, exists).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = c.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM formsvc_schema").Scan(&version)
	return version, err
}

// Strings returns the single column of a query's rows.
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

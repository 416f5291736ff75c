package bunstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
)

// Ping implements storage.Database.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	var state, peer string
	var since int64
	var version int
	row := s.read.QueryRowContext(ctx, "SELECT state, peer, since, (SELECT max(version) FROM formsvc_schema) FROM formsvc_identity WHERE id = 1")
	switch err := row.Scan(&state, &peer, &since, &version); {
	case err != nil:
		return s.backend.Classify(err)
	case state == "moved":
		return fmt.Errorf("%w: since %s its data is in %s; use that one", formsvc.ErrMoved, fromMicros(since).Format(time.RFC3339), peer)
	case state != "active":
		return errors.New("bunstore: the database is in a state that this release does not know: " + state)
	case version > s.dialect.Schema:
		return &formsvc.DegradedError{Components: []string{"schema"}, Err: newer(version, s.dialect.Schema)}
	}
	return nil
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

// A Migration is one step of the schema.
type Migration struct {
	storage.Migration

	sql    string
	oldest int // the lowest version whose releases can work with this step
}

func newer(version, known int) error {
	return fmt.Errorf("%w: it has version %d, this release knows %d", storage.ErrSchemaNewer, version, known)
}

// IgnoreNewer returns the error of Ping, unless it only says that the schema is newer.
func IgnoreNewer(err error) error {
	if _, ok := errors.AsType[*formsvc.DegradedError](err); ok {
		return nil
	}
	return err
}

// common has the steps that are the same for both databases, see its README.
//
//go:embed migrations
var common embed.FS

// sqliteTypes replaces the types in common steps by those of SQLite.
func sqliteTypes() *strings.Replacer {
	return strings.NewReplacer(" BIGINT", " INTEGER", " BYTEA", " BLOB", " BOOLEAN", " INTEGER")
}

// Migrations reads the embedded files migrations/NNNN_name.sql of a database and those for both, in the order of their names.
// A step that only adds to the schema begins with the line "-- Oldest version: N", for releases that know no step after N.
func Migrations(own fs.FS, sqlite bool) (list []Migration) {
	texts := make(map[string]string)
	for _, files := range []fs.FS{own, common} {
		names, _ := fs.Glob(files, "migrations/*.sql") // never fails
		for _, file := range names {
			text, _ := fs.ReadFile(files, file) // never fails
			if texts[file] = string(text); sqlite && files == fs.FS(common) {
				texts[file] = sqliteTypes().Replace(texts[file])
			}
		}
	}
	for i, file := range slices.Sorted(maps.Keys(texts)) {
		_, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		step := Migration{storage.Migration{Version: i + 1, Name: name}, texts[file], i + 1}
		_, _ = fmt.Sscanf(step.sql, "-- Oldest version: %d", &step.oldest) // otherwise none but its own
		list = append(list, step)
	}
	return list
}

// Steps migrates the schema to this release, in a transaction that excludes other migrating
// processes. exists is the query that reports whether the table formsvc_schema exists.
func Steps(ctx context.Context, list []Migration, c bun.IConn, exists string) error {
	times, oldest, err := applied(ctx, c, exists)
	if err == nil && oldest > len(list) {
		err = newer(len(times), len(list))
	}
	if err == nil && times == nil {
		_, err = c.ExecContext(ctx, "CREATE TABLE formsvc_schema (version INTEGER PRIMARY KEY, applied_at BIGINT NOT NULL, oldest INTEGER NOT NULL)")
	}
	for n := len(times); err == nil && n < len(list); n++ {
		err = list[n].apply(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Migrate runs Steps, and gives a new database its identity.
func Migrate(ctx context.Context, list []Migration, c bun.IConn, exists string) error {
	if err := Steps(ctx, list, c, exists); err != nil {
		return err
	}
	return makeIdentity(ctx, c)
}

// Current reports whether Migrate has nothing to do.
func Current(ctx context.Context, list []Migration, c bun.IConn, exists string) bool {
	times, oldest, err := applied(ctx, c, exists)
	if err != nil || len(times) < len(list) || oldest > len(list) {
		return false
	}
	return c.QueryRowContext(ctx, "SELECT id FROM formsvc_identity WHERE id = 1").Scan(new(int)) == nil
}

func (m *Migration) apply(ctx context.Context, c bun.IConn) error {
	if _, err := c.ExecContext(ctx, m.sql); err != nil {
		return fmt.Errorf("version %d (%s): %w", m.Version, m.Name, err)
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf(
		"INSERT INTO formsvc_schema (version, applied_at, oldest) VALUES (%d, %d, %d)", m.Version, micros(time.Now()), m.oldest))
	return err
}

// applied returns when the steps were applied, in order, or nil if there is no table of them; and the oldest version whose
// releases can work with all of them.
func applied(ctx context.Context, c bun.IConn, exists string) (times []int64, oldest int, err error) {
	var there bool
	if err := c.QueryRowContext(ctx, exists).Scan(&there); err != nil || !there {
		return nil, 0, err
	}
	times, err = List(ctx, c, func(rows *sql.Rows, at *int64) error {
		var least int
		err := rows.Scan(at, &least)
		oldest = max(oldest, least)
		return err
	}, "SELECT applied_at, oldest FROM formsvc_schema ORDER BY version")
	return slices.Insert(times, 0), oldest, err
}

// Status returns every migration that this release knows, and when it was applied. It changes
// nothing.
func Status(ctx context.Context, list []Migration, c bun.IConn, exists string) ([]storage.Migration, error) {
	times, _, err := applied(ctx, c, exists)
	if err != nil {
		return nil, err
	}
	steps := make([]storage.Migration, len(list))
	for i := range list {
		steps[i] = list[i].Migration
		if i < len(times) {
			steps[i].AppliedAt = fromMicros(times[i])
		}
	}
	return steps, nil
}

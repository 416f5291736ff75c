package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
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

// A Migration is one step of the schema.
type Migration struct {
	storage.Migration

	sql string
}

// ErrSchemaNewer means that another release has migrated the database further. This release
// must not write to it.
var ErrSchemaNewer = errors.New("the database schema is newer than this release")

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
		if version, err := strconv.Atoi(number); err != nil || version != i+1 {
			return nil, fmt.Errorf("bunstore: migration %s: want number %d", file, i+1)
		}
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		list = append(list, Migration{storage.Migration{Version: i + 1, Name: name}, string(text)})
	}
	return list, nil
}

// Steps migrates the schema to this release, in a transaction that excludes other migrating
// processes. exists is the query that reports whether the table formsvc_schema exists.
func Steps(ctx context.Context, list []Migration, c bun.IConn, exists string) error {
	times, err := applied(ctx, c, exists)
	if err == nil && len(times) > len(list) {
		err = fmt.Errorf("%w: it has version %d, this release knows %d", ErrSchemaNewer, len(times), len(list))
	}
	if err == nil && times == nil {
		_, err = c.ExecContext(ctx, "CREATE TABLE formsvc_schema (version INTEGER PRIMARY KEY, applied_at BIGINT NOT NULL)")
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
	times, err := applied(ctx, c, exists)
	if err == nil && len(times) == len(list) {
		_, err = ReadState(ctx, c)
		return err == nil
	}
	return false
}

func (m *Migration) apply(ctx context.Context, c bun.IConn) error {
	if _, err := c.ExecContext(ctx, m.sql); err != nil {
		return fmt.Errorf("version %d (%s): %w", m.Version, m.Name, err)
	}
	_, err := c.ExecContext(ctx, fmt.Sprintf(
		"INSERT INTO formsvc_schema (version, applied_at) VALUES (%d, %d)", m.Version, micros(time.Now())))
	return err
}

// applied returns when the steps were applied, in order, or nil if there is no table of them.
func applied(ctx context.Context, c bun.IConn, exists string) (times []int64, err error) {
	var there bool
	if err := c.QueryRowContext(ctx, exists).Scan(&there); err != nil || !there {
		return nil, err
	}
	rows, err := c.QueryContext(ctx, "SELECT applied_at FROM formsvc_schema ORDER BY version")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	times = []int64{}
	for rows.Next() {
		var at int64
		if err := rows.Scan(&at); err != nil {
			return nil, err
		}
		times = append(times, at)
	}
	return times, rows.Err()
}

// Status returns every migration that this release knows, and when it was applied. It changes
// nothing.
func Status(ctx context.Context, list []Migration, c bun.IConn, exists string) ([]storage.Migration, error) {
	times, err := applied(ctx, c, exists)
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

// Strings runs a query that returns one column of text.
func Strings(ctx context.Context, c bun.IConn, query string, args ...any) ([]string, error) {
	return List(ctx, c, func(rows *sql.Rows, s *string) error { return rows.Scan(s) }, query, args...)
}

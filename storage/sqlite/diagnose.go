package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/formsvc/toolkit/storage/finding"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// DiagnoseOptions are the optional settings of [Diagnose].
type DiagnoseOptions struct {
	// Deep reads the whole database to find damage, at about 200 MB per second. Defaults
	// to checking settings only.
	Deep bool
	// Now returns the time. Defaults to [time.Now].
	Now func() time.Time
}

// Diagnose checks the database file at path without changing it: whether it can be used,
// its mode, its schema, its log, and whether the clock is behind the data. A server may
// be using the file. A check that fails is a finding, too.
func Diagnose(ctx context.Context, path string, opts *DiagnoseOptions) []finding.Finding {
	var o DiagnoseOptions
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding.Finding{finding.Warn("database", "Start the server, which creates it, or name the right file.", "there is no file %s yet", path)}
	case err != nil:
		return []finding.Finding{finding.Bad("database", "Check that this user may read it.", "%v", err)}
	case !info.Mode().IsRegular():
		return []finding.Finding{finding.Bad("database", "Name the file of the database.", "%s is not a file", path)}
	}
	var list []finding.Finding
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		list = append(list, finding.Warn("database file", "Run: chmod 600 "+path, "other users than its owner may use %s (mode %04o)", path, mode))
	} else {
		list = append(list, finding.Good("database file", "%s, mode %04o", path, mode))
	}
	d := &diagnosis{DiagnoseOptions: o}
	if d.db, err = openReadOnly(path); err != nil {
		return append(list, finding.Bad("database", "Check that this user may read it.", "it can't be opened: %v", err))
	}
	defer func() { _ = d.db.Close() }()
	return append(list, d.look(ctx)...)
}

type diagnosis struct {
	DiagnoseOptions

	db *sql.DB
}

// openReadOnly opens a database file read-only.
func openReadOnly(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return sql.Open("sqlite", u.String())
}

const restoreAdvice = "Stop the server, keep a copy of the file, and restore a backup (formsvc restore)."

func (d *diagnosis) look(ctx context.Context) []finding.Finding {
	var version, mode string
	err := d.db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version)
	if err == nil {
		err = d.db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	}
	switch {
	case isCorrupt(err):
		return []finding.Finding{finding.Bad("database", restoreAdvice, "it is damaged, or not a SQLite database: %v", err)}
	case err != nil:
		return []finding.Finding{finding.Bad("database", "Check that this user may read it and write to its directory, and that the disk works.", "it can't be read: %v", err)}
	}
	list := []finding.Finding{finding.Good("database", "SQLite %s answers", version)}
	if mode == "wal" {
		list = append(list, finding.Good("journal", "write-ahead log; every commit of a server waits for the disk (synchronous=FULL)"))
	} else {
		list = append(list, finding.Warn("journal", "Start the server again, which sets it. Check that no other program changes the file, and that it is on a local disk.",
			"the journal mode is %s, not wal", mode))
	}
	schema, usable := d.schema(ctx)
	list = append(list, schema)
	if usable {
		list = append(list, d.clock(ctx))
	}
	if d.Deep {
		list = append(list, d.integrity(ctx))
	}
	return list
}

// schema reports the version of the schema, and whether this release can use it.
func (d *diagnosis) schema(ctx context.Context) (finding.Finding, bool) {
	known, err := migrations()
	if err != nil {
		return finding.Bad("schema", "Report this.", "%v", err), false
	}
	schema, err := bunstore.ReadSchema(ctx, d.db, bunstore.ColumnsOfSQLite)
	if err != nil {
		return finding.Bad("schema", restoreAdvice, "it can't be read: %v", err), false
	}
	return schema.Finding(known)
}

// clock compares the newest event with the local time, as there is no other clock.
func (d *diagnosis) clock(ctx context.Context) finding.Finding {
	var newest int64
	err := d.db.QueryRowContext(ctx, "SELECT created_at FROM formsvc_events ORDER BY seq DESC LIMIT 1").Scan(&newest)
	now := d.Now()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return finding.Good("clock", "it is %s here; there are no events to compare that with", now.UTC().Format(time.RFC3339))
	case err != nil:
		return finding.Bad("clock", restoreAdvice, "the newest event can't be read: %v", err)
	}
	if ahead := time.UnixMicro(newest).Sub(now); ahead > bunstore.ClockTolerance {
		return finding.Bad("clock", "Set the clock, and keep it right with NTP: receivers reject webhooks with a wrong time.",
			"the newest event is %v ahead of the clock", ahead.Round(time.Second))
	}
	return finding.Good("clock", "it is %s here, after the newest event", now.UTC().Format(time.RFC3339))
}

func (d *diagnosis) integrity(ctx context.Context) finding.Finding {
	var verdict string
	err := d.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	if err == nil && verdict == "ok" {
		return finding.Good("integrity", "every page was read and is consistent")
	}
	if err != nil {
		verdict = err.Error()
	}
	return finding.Bad("integrity", restoreAdvice, "the database is damaged: %s", verdict)
}

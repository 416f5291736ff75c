package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Contents is the number of records in a database.
type Contents struct {
	Campaigns int64
	Responses int64
	Files     int64
}

// Look counts the records in the database file at path, of any release, without changing
// it. A server may be using the file. A file with other tables, or none, has no records.
// The error is fs.ErrNotExist if there is no file.
func Look(ctx context.Context, path string) (_ Contents, err error) {
	if _, err := os.Stat(path); err != nil {
		return Contents{}, err
	}
	db, err := openReadOnly(path)
	if err != nil {
		return Contents{}, fmt.Errorf("sqlite: look at %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := count(ctx, db)
	if err != nil {
		return Contents{}, fmt.Errorf("sqlite: look at %s: %w", path, err)
	}
	return c, nil
}

func count(ctx context.Context, db *sql.DB) (c Contents, err error) {
	var tables int
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND "+
		"name IN ('formsvc_campaigns', 'formsvc_counters', 'formsvc_files')").Scan(&tables)
	if err != nil || tables < 3 {
		return c, err
	}
	err = db.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM formsvc_campaigns), "+
		"(SELECT coalesce(sum(responses), 0) FROM formsvc_counters), "+
		"(SELECT count(*) FROM formsvc_files WHERE account_id IS NOT NULL)").Scan(&c.Campaigns, &c.Responses, &c.Files)
	return c, err
}

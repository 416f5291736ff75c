package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// Classify implements bunstore.Backend. It looks only at result codes
// (https://sqlite.org/rescode.html), because texts may change.
func (*backend) Classify(err error) error {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, errNoConnection) {
		return bunstore.Classified(formsvc.ErrUnavailable, err)
	}
	var e *sqlite.Error
	if !errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch e.Code() {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY:
		return bunstore.Classified(formsvc.ErrConflict, err)
	case lib.SQLITE_CONSTRAINT_FOREIGNKEY:
		return bunstore.Classified(formsvc.ErrNotFound, err)
	case lib.SQLITE_CONSTRAINT_TRIGGER: // from a fence; no statement of ours meets the other triggers that raise
		return bunstore.Classified(formsvc.ErrMoved, err)
	}
	switch primary(e) {
	case lib.SQLITE_FULL:
		return bunstore.Classified(formsvc.ErrNoSpace, err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN,
		lib.SQLITE_READONLY, lib.SQLITE_NOMEM, lib.SQLITE_PROTOCOL:
		return bunstore.Classified(formsvc.ErrUnavailable, err)
	}
	return err
}

// primary returns the primary code of an extended one.
func primary(e *sqlite.Error) int { return e.Code() & 0xff }

// isFull reports whether the disk is full, or the database has its maximum size.
func isFull(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && primary(e) == lib.SQLITE_FULL
}

// isCorrupt reports whether the file is damaged or not a database.
func isCorrupt(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (primary(e) == lib.SQLITE_CORRUPT || primary(e) == lib.SQLITE_NOTADB)
}

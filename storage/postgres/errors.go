package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// Classify implements bunstore.Backend. It looks only at SQLSTATE codes
// (https://www.postgresql.org/docs/current/errcodes-appendix.html), because servers
// translate the texts.
func (*backend) Classify(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code {
		case "23505": // unique_violation
			return bunstore.Classified(formsvc.ErrConflict, err)
		case "23503", "22P02": // foreign_key_violation; text that isn't a UUID identifies nothing
			return bunstore.Classified(formsvc.ErrNotFound, err)
		case "22021": // character_not_in_repertoire
			return bunstore.Classified(formsvc.ErrInvalid, err)
		case "MV001": // raised by the triggers that package transfer leaves in a database that was moved
			return bunstore.Classified(formsvc.ErrMoved, err)
		case "53100": // disk_full
			return bunstore.Classified(formsvc.ErrNoSpace, err)
		}
		if retryable(err) || unavailable(e) {
			return bunstore.Classified(formsvc.ErrUnavailable, err)
		}
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if broken(err) {
		return bunstore.Classified(formsvc.ErrUnavailable, err)
	}
	return err
}

// unavailable reports whether the server can't serve now.
func unavailable(e *pgconn.PgError) bool {
	switch e.Code[:2] {
	case "08", // connection exception
		"53", // insufficient resources: connections, memory
		"57", // operator intervention: shutdown, statement timeout
		"58": // system error: I/O
		return true
	}
	return e.Code == "25006" || // read_only_sql_transaction: a standby
		e.Code == "55P03" // lock_not_available
}

// retryable reports whether the server rolled back a transaction because of others.
func retryable(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01") // serialization failure, deadlock
}

// broken reports whether the connection failed rather than the statement.
func broken(err error) bool {
	var (
		connect *pgconn.ConnectError
		network net.Error
	)
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// undone reports whether the failed operation certainly changed nothing: the server
// reported the failure and stayed up, or never got the request. driver.ErrBadConn isn't
// certain: pgx returns it also if the connection of a statement without arguments, such as
// a commit, breaks before the reply.
func undone(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		class := e.Code[:2]
		return e.Severity != "FATAL" && e.Severity != "PANIC" && class != "08" && class != "57" && class != "58"
	}
	return pgconn.SafeToRetry(err)
}

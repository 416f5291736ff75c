package postgres

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sameEverywhere sets, for a session, what a database or role may set otherwise and what changes how values are read or
// written, or which transactions fail.
const sameEverywhere = "SELECT set_config('bytea_output', 'hex', false), set_config('array_nulls', 'on', false), " +
	"set_config('transform_null_equals', 'off', false), set_config('default_transaction_isolation', 'read committed', false)"

// endSessions returns an error handler that also closes the connection after an error that its session would repeat, for example
// because the server was read-only when the session began. Idle connections are as old, so they are closed, too.
func (s *Store) endSessions(next pgconn.PgErrorHandler) pgconn.PgErrorHandler {
	return func(c *pgconn.PgConn, e *pgconn.PgError) bool {
		switch e.Code {
		case "25006", // read_only_sql_transaction
			"57P01", "57P02", "57P03": // shutdown, crash, not ready
			s.closeIdle()
			return false
		}
		return next(c, e)
	}
}

// pooled reports whether a pooler such as PgBouncer is between this process and the server: then the session isn't that of
// the process that the connection names. It may be another one for each transaction, without prepared statements and
// LISTEN. It is false if the data source name says how to run statements.
func pooled(ctx context.Context, dsn string, cfg *pgx.ConnConfig) (bool, error) {
	if strings.Contains(dsn, "default_query_exec_mode") {
		return false, nil
	}
	cfg = cfg.Copy()
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, connectLimit)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	defer cancel()
	defer func() { _ = conn.Close(ctx) }()
	var pid uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid != conn.PgConn().PID(), err
}

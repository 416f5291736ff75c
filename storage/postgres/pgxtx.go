package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/formsvc"
)

// BindPgx is like [Bind] for a transaction of pgx, from a *pgx.Conn or a *pgxpool.Pool, as
// programs with sqlc or River use it. It works with every query execution mode of the
// connection, and leaves no prepared statements behind.
func BindPgx(tx pgx.Tx, opts *Options) (formsvc.Store, error) {
	if tx == nil {
		return nil, errors.New("postgres: bind: a transaction is required")
	}
	c := pgxTx{tx: tx, mode: pgx.QueryExecModeExec}
	if conn := tx.Conn(); conn != nil {
		if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
			c.mode = pgx.QueryExecModeSimpleProtocol
		}
		if conn.PgConn().ParameterStatus("standard_conforming_strings") == "off" {
			return nil, errors.New("postgres: bind: standard_conforming_strings is off, which would change what is stored")
		}
	}
	return bindTo(bun.NewDB(nil, pgdialect.New()), c, opts), nil
}

// pgxTx runs queries in a transaction of pgx and returns results of database/sql, which
// only a *sql.DB can create. It creates one for each call, because a *sql.DB has a
// goroutine until it is closed. Closing it early doesn't end its query.
type pgxTx struct {
	tx   pgx.Tx
	mode pgx.QueryExecMode
}

// QueryContext is like that of database/sql.
func (t pgxTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	db := sql.OpenDB(t)
	defer func() { _ = db.Close() }()
	return db.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // the caller closes them
}

// QueryRowContext is like that of database/sql.
func (t pgxTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	db := sql.OpenDB(t)
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(ctx, query, args...)
}

// ExecContext is like that of database/sql.
func (t pgxTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := t.tx.Exec(ctx, query, append([]any{t.mode}, args...)...)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

// Connect implements driver.Connector.
func (t pgxTx) Connect(context.Context) (driver.Conn, error) { return pgxConn{t}, nil }

// Driver implements driver.Connector.
func (pgxTx) Driver() driver.Driver { return nil }

// A pgxConn is a connection of a transaction of pgx that can only query.
type pgxConn struct{ pgxTx }

// Prepare implements driver.Conn.
func (pgxConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

// Begin implements driver.Conn.
func (pgxConn) Begin() (driver.Tx, error) { return nil, errors.ErrUnsupported }

// Close implements driver.Conn. The transaction belongs to the caller.
func (pgxConn) Close() error { return nil }

// CheckNamedValue implements driver.NamedValueChecker: pgx accepts more types than
// database/sql.
func (pgxConn) CheckNamedValue(*driver.NamedValue) error { return nil }

// QueryContext implements driver.QueryerContext.
func (c pgxConn) QueryContext(ctx context.Context, query string, named []driver.NamedValue) (driver.Rows, error) {
	args := []any{c.mode, pgx.QueryResultFormats{pgx.TextFormatCode}}
	for _, n := range named {
		args = append(args, n.Value)
	}
	rows, err := c.tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	// pgx returns an error of the query with the first row; database/sql expects it now.
	r := &pgxRows{rows: rows, ahead: rows.Next()}
	if err := rows.Err(); err != nil {
		rows.Close()
		return nil, err
	}
	return r, nil
}

// pgxRows are rows of pgx, with values as text.
type pgxRows struct {
	rows  pgx.Rows
	ahead bool // there is a row that Next hasn't returned
}

// Columns implements driver.Rows.
func (r *pgxRows) Columns() []string {
	fields := r.rows.FieldDescriptions()
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	return names
}

// Close implements driver.Rows.
func (r *pgxRows) Close() error {
	r.rows.Close()
	return r.rows.Err()
}

// Next implements driver.Rows.
func (r *pgxRows) Next(dest []driver.Value) error {
	if !r.ahead {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	fields := r.rows.FieldDescriptions()
	for i, raw := range r.rows.RawValues() {
		v, err := valueOf(fields[i].DataTypeOID, raw)
		if err != nil {
			return fmt.Errorf("column %s: %w", fields[i].Name, err)
		}
		dest[i] = v
	}
	r.ahead = r.rows.Next()
	return nil
}

// valueOf parses a value as the driver for database/sql does.
func valueOf(oid uint32, text []byte) (driver.Value, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // NULL
	}
	s := string(text)
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		return strconv.ParseInt(s, 10, 64)
	case pgtype.Float4OID, pgtype.Float8OID:
		return strconv.ParseFloat(s, 64)
	case pgtype.BoolOID:
		return s == "t", nil
	case pgtype.ByteaOID:
		digits, ok := strings.CutPrefix(s, `\x`)
		if !ok {
			return nil, errors.New("bytea_output is not hex")
		}
		return hex.DecodeString(digits)
	}
	return s, nil
}

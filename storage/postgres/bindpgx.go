package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// BindPgx is like [Bind] for a transaction of pgx, such as that of a pgxpool.Pool. The caller
// commits it or rolls it back, and must read the rows of its own queries to the end before it
// calls the store.
func BindPgx(tx pgx.Tx, opts *Options) (formsvc.Store, error) {
	if tx == nil {
		return nil, errors.New("postgres: bind: a transaction is required")
	}
	db := sql.OpenDB(pgxTx{tx})
	conn, err := db.Conn(context.Background()) // never waits
	// The connection stays, and can be forgotten. The goroutine of db ends.
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("postgres: bind: %w", err)
	}
	return bind(bun.NewDB(nil, pgdialect.New()), conn, opts), nil
}

// bind returns a store that builds queries and runs them in a transaction of the caller.
func bind(build bunstore.Builder, c bun.IConn, opts *Options) formsvc.Store {
	b := newBackend(8 + rand.IntN(8)) //nolint:gosec // not a secret
	o := opts.withDefaults()
	return bunstore.New(bunstore.Config{Backend: b, Dialect: b.dialect(), Keys: o.Keyring}).Bound(build, c)
}

// A pgxTx is a driver of database/sql with one connection, a transaction of pgx. The driver of
// package stdlib can't be given one.
type pgxTx struct{ tx pgx.Tx }

// Connect implements driver.Connector.
func (p pgxTx) Connect(context.Context) (driver.Conn, error) { return p, nil }

// Driver implements driver.Connector.
func (pgxTx) Driver() driver.Driver { return nil }

// Close implements driver.Conn. The transaction is the caller's.
func (pgxTx) Close() error { return nil }

var errUnbound = errors.New("postgres: a bound store only queries and executes")

// Prepare implements driver.Conn.
func (pgxTx) Prepare(string) (driver.Stmt, error) { return nil, errUnbound }

// Begin implements driver.Conn.
func (pgxTx) Begin() (driver.Tx, error) { return nil, errUnbound }

// CheckNamedValue implements driver.NamedValueChecker: pgx takes every value.
func (pgxTx) CheckNamedValue(*driver.NamedValue) error { return nil }

// ExecContext implements driver.ExecerContext.
func (p pgxTx) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	tag, err := p.tx.Exec(ctx, query, pgxArgs(nil, args)...)
	return driver.RowsAffected(tag.RowsAffected()), err
}

// QueryContext implements driver.QueryerContext.
func (p pgxTx) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	// All other types come as text.
	binary := pgx.QueryResultFormatsByOID{
		pgtype.BoolOID: pgx.BinaryFormatCode, pgtype.ByteaOID: pgx.BinaryFormatCode,
		pgtype.Int2OID: pgx.BinaryFormatCode, pgtype.Int4OID: pgx.BinaryFormatCode, pgtype.Int8OID: pgx.BinaryFormatCode,
	}
	rows, err := p.tx.Query(ctx, query, pgxArgs([]any{binary}, args)...)
	if err != nil {
		return nil, err
	}
	// In some modes of pgx, the first row is needed to know the columns.
	first := rows.Next()
	if err := rows.Err(); err != nil {
		rows.Close()
		return nil, err
	}
	return &pgxRows{rows: rows, types: p.tx.Conn().TypeMap(), fields: rows.FieldDescriptions(), ahead: true, more: first}, nil
}

// pgxArgs appends arguments to options.
func pgxArgs(list []any, args []driver.NamedValue) []any {
	for _, arg := range args {
		list = append(list, arg.Value)
	}
	return list
}

// pgxRows are rows of pgx for database/sql.
type pgxRows struct {
	rows   pgx.Rows
	types  *pgtype.Map
	fields []pgconn.FieldDescription
	ahead  bool // Next of rows was called, and returned more
	more   bool
}

// Columns implements driver.Rows.
func (r *pgxRows) Columns() []string {
	names := make([]string, len(r.fields))
	for i := range r.fields {
		names[i] = r.fields[i].Name
	}
	return names
}

// Close implements driver.Rows.
func (r *pgxRows) Close() error {
	r.rows.Close()
	return r.rows.Err()
}

// Next implements driver.Rows.
func (r *pgxRows) Next(row []driver.Value) (err error) {
	if !r.ahead {
		r.more = r.rows.Next()
	}
	r.ahead = false
	if !r.more {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	for i, raw := range r.rows.RawValues() {
		if row[i], err = r.value(&r.fields[i], raw); err != nil {
			return fmt.Errorf("column %s: %w", r.fields[i].Name, err)
		}
	}
	return nil
}

// value returns a value of a type that a store uses as the driver of package stdlib does, and others as text.
func (r *pgxRows) value(field *pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	if raw == nil {
		return nil, nil
	}
	switch field.DataTypeOID {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		return scanned[int64](r.types, field, raw)
	case pgtype.BoolOID:
		return scanned[bool](r.types, field, raw)
	case pgtype.ByteaOID:
		return scanned[[]byte](r.types, field, raw)
	}
	return string(raw), nil
}

func scanned[T any](types *pgtype.Map, field *pgconn.FieldDescription, raw []byte) (v T, err error) {
	err = types.Scan(field.DataTypeOID, field.Format, raw, &v)
	return v, err
}

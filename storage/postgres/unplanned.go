package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
)

// unplanned has every statement planned again, whatever execution mode the pool has.
type unplanned struct{ db *sql.DB }

// QueryContext is like that of database/sql.
func (u unplanned) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return u.db.QueryContext(ctx, query, u.args(args)...)
}

// ExecContext is like that of database/sql.
func (u unplanned) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return u.db.ExecContext(ctx, query, u.args(args)...)
}

// QueryRowContext is like that of database/sql.
func (u unplanned) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return u.db.QueryRowContext(ctx, query, u.args(args)...)
}

func (unplanned) args(args []any) []any { return append([]any{pgx.QueryExecModeExec}, args...) }

package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/uptrace/bun"
)

// preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Prepared runs queries that have arguments as prepared statements, which it keeps until
// it is closed. Their texts must be constants. It passes on a query without arguments, as
// bun builds them, unchanged. It is safe for concurrent use if the wrapped connection is.
type Prepared struct {
	on    preparer
	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

// NewPrepared returns a Prepared over a *sql.DB or *sql.Conn.
func NewPrepared(on preparer) *Prepared {
	return &Prepared{on: on, stmts: make(map[string]*sql.Stmt)}
}

// stmt returns the statement of a query, or nil for one to pass on: without arguments, or
// one that can't be prepared and will fail with the same error.
func (p *Prepared) stmt(ctx context.Context, query string, args []any) *sql.Stmt {
	if len(args) == 0 {
		return nil
	}
	p.mu.RLock()
	s := p.stmts[query]
	p.mu.RUnlock()
	if s != nil {
		return s
	}
	// Without the lock: a server that doesn't reply must not delay other statements.
	s, err := p.on.PrepareContext(ctx, query)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if earlier := p.stmts[query]; earlier != nil {
		_ = s.Close()
		return earlier
	}
	p.stmts[query] = s
	return s
}

// Close closes the statements. Close them before their *sql.Conn: database/sql doesn't do
// that, and SQLite keeps the connection of an open statement, and its log.
func (p *Prepared) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, s := range p.stmts {
		err = errors.Join(err, s.Close())
	}
	clear(p.stmts)
	return err
}

// QueryContext is like that of database/sql.
func (p *Prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := p.stmt(ctx, query, args); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return p.on.QueryContext(ctx, query, args...)
}

// ExecContext is like that of database/sql.
func (p *Prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := p.stmt(ctx, query, args); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return p.on.ExecContext(ctx, query, args...)
}

// QueryRowContext is like that of database/sql.
func (p *Prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := p.stmt(ctx, query, args); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return p.on.QueryRowContext(ctx, query, args...)
}

// List returns the rows of a query, each read by scan.
func List[T any](
	ctx context.Context, c bun.IConn, scan func(*sql.Rows, *T) error, query string, args ...any,
) (list []T, err error) {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var row T
		if err := scan(rows, &row); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
}

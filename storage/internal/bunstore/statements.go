package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Prepared runs queries that have arguments as prepared statements, which it
// keeps. Their texts must be constants: each one is kept until the connection
// closes. A query without arguments, as bun builds them, is passed on as it is.
// It is safe for concurrent use if what it wraps is.
type Prepared struct {
	on    preparer
	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

// NewPrepared returns a Prepared over a *sql.DB or *sql.Conn.
func NewPrepared(on preparer) *Prepared {
	return &Prepared{on: on, stmts: make(map[string]*sql.Stmt)}
}

// stmt returns the statement of a query, or nil for one that is to be passed on: without
// arguments, or since it can't be prepared, whose error it meets again.
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.stmts[query]; s != nil {
		return s
	}
	s, err := p.on.PrepareContext(ctx, query) //nolint:sqlclosecheck // kept: it closes with the connection
	if err != nil {
		return nil
	}
	p.stmts[query] = s
	return s
}

// Close closes the statements. Those on a *sql.Conn must be closed before it: database/sql
// doesn't do that, and SQLite keeps the connection of an open statement, and the log with it.
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
	if s := p.stmt(ctx, query, args); s != nil { //nolint:sqlclosecheck // kept: it closes with the connection
		return s.QueryContext(ctx, args...)
	}
	return p.on.QueryContext(ctx, query, args...)
}

// ExecContext is like that of database/sql.
func (p *Prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := p.stmt(ctx, query, args); s != nil { //nolint:sqlclosecheck // kept: it closes with the connection
		return s.ExecContext(ctx, args...)
	}
	return p.on.ExecContext(ctx, query, args...)
}

// QueryRowContext is like that of database/sql.
func (p *Prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := p.stmt(ctx, query, args); s != nil { //nolint:sqlclosecheck // kept: it closes with the connection
		return s.QueryRowContext(ctx, args...)
	}
	return p.on.QueryRowContext(ctx, query, args...)
}

package postgres

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

const (
	// connectLimit limits connecting to a host of a data source name without connect_timeout.
	connectLimit = 5 * time.Second
	// silenceMargin is how much later than the server the client ends a statement, so that a server that works is first: its error
	// leaves the connection open.
	silenceMargin = 2 * time.Second
)

// newDialer returns a dialer whose connections notice when the other host is gone.
func newDialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
}

// A guarded connection fails when a read or a write makes no progress for the limit. That costs less than a context with a deadline for
// every statement.
type guarded struct {
	net.Conn
	limit  time.Duration
	failed func()

	mu       sync.Mutex
	deadline time.Time // the driver's; zero: none
	lifted   bool      // whether there is no limit
}

// Read implements net.Conn.
func (g *guarded) Read(p []byte) (int, error) {
	g.extend(g.SetReadDeadline)
	n, err := g.Conn.Read(p)
	return n, g.noticed(err)
}

// Write implements net.Conn.
func (g *guarded) Write(p []byte) (int, error) {
	g.extend(g.SetWriteDeadline)
	n, err := g.Conn.Write(p)
	return n, g.noticed(err)
}

// SetDeadline implements net.Conn. The driver uses it to end a statement whose context has ended.
func (g *guarded) SetDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = t
	return g.Conn.SetDeadline(t)
}

// extend sets the deadline of the next operation, unless the driver has set one.
func (g *guarded) extend(set func(time.Time) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deadline.IsZero() && !g.lifted {
		_ = set(time.Now().Add(g.limit)) // if it fails, so does the operation
	}
}

// noticed returns the error, and reports it unless this side ended the operation.
func (g *guarded) noticed(err error) error {
	if err == nil || errors.Is(err, net.ErrClosed) {
		return err
	}
	g.mu.Lock()
	own := !g.deadline.IsZero()
	g.mu.Unlock()
	if !own {
		g.failed()
	}
	return err
}

// lift removes the limit, and returns how to restore it.
func (g *guarded) lift() (restore func()) {
	set := func(lifted bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.lifted = lifted
		if lifted && g.deadline.IsZero() {
			_ = g.Conn.SetDeadline(time.Time{})
		}
	}
	set(true)
	return func() { set(false) }
}

// guard makes dial return guarded connections, whose failure closes the idle ones: they lead to the same server, and each would fail a
// request of its own.
func (s *Store) guard(dial func(ctx context.Context, network, addr string) (net.Conn, error), limit time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &guarded{Conn: c, limit: limit, failed: s.closeIdle}, nil
	}
}

// closeIdle closes the idle connections in the background, at most once per second.
func (s *Store) closeIdle() {
	now := time.Now().UnixNano()
	last := s.idleClosed.Load()
	if now-last < int64(time.Second) || !s.idleClosed.CompareAndSwap(last, now) {
		return
	}
	go func() {
		s.db.SetMaxIdleConns(0)
		s.db.SetMaxIdleConns(s.maxConns)
	}()
}

// unlimited runs do in a transaction whose statements take as long as they need, such as a migration.
func unlimited(ctx context.Context, tx *bunstore.Transactions, do func(context.Context, bun.IConn) error) error {
	return tx.Run(ctx, func(ctx context.Context, c bun.IConn) error {
		if g := guardOf(c); g != nil {
			defer g.lift()()
		}
		if _, err := c.ExecContext(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		return do(ctx, c)
	})
}

// guardOf returns the guarded connection under c, or nil if the caller opened the database.
func guardOf(c bun.IConn) (g *guarded) {
	conn, ok := c.(*sql.Conn)
	if !ok {
		return nil
	}
	_ = conn.Raw(func(driver any) error {
		pg, ok := driver.(*stdlib.Conn)
		if !ok {
			return nil
		}
		under := pg.Conn().PgConn().Conn()
		if encrypted, ok := under.(*tls.Conn); ok {
			under = encrypted.NetConn()
		}
		g, _ = under.(*guarded)
		return nil
	})
	return g
}

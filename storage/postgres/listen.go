package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/formsvc/toolkit/formsvc"
)

// channel is the expression for the channel of processes with the same tables. It names
// the schema, since others of the same database may have such tables, too.
const channel = `'formsvc_' || (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = 'formsvc_deliveries'::regclass)`

// Wait implements delivery.Queue. It also returns when another process has queued
// deliveries, if it can learn of that: see [Options.NoListen].
func (s *Store) Wait(ctx context.Context, d time.Duration) error {
	if err := s.records.Usable(ctx); err != nil {
		return err
	}
	s.notifier.waitBegins()
	defer s.notifier.waitEnds()
	l := s.listener
	if l == nil || d <= 0 || !l.turn.TryLock() { // one call listens for all
		return s.records.Wait(ctx, d)
	}
	defer l.turn.Unlock()
	return l.wait(ctx, d, s.records.Woken(), s.records.Closed())
}

const (
	// connectPause is the pause before connecting again after that failed, or was
	// abandoned because there was work to do.
	connectPause = 3 * time.Second
	// connectTimeout limits connecting, and closing the connection.
	connectTimeout = 5 * time.Second
)

// A listener receives notifications of deliveries that other processes queued. It ignores
// failures, because its callers poll the queue anyway. It has no goroutine between calls.
type listener struct {
	config *pgx.ConnConfig

	turn    sync.Mutex // guards the fields below
	conn    *pgx.Conn  // nil: to be opened
	retryAt time.Time
	pending bool // a notification was received and no Wait has returned for it
}

// wait returns when a notification arrives, woken is signalled, the store closes, ctx
// ends, or after d. The caller holds turn.
func (l *listener) wait(ctx context.Context, d time.Duration, woken, closed <-chan struct{}) (err error) {
	limit, cancel := context.WithTimeout(ctx, d)
	heard := make(chan bool, 1)
	go func() { heard <- l.listen(limit) }()
	open := true // heard may still deliver a value
	defer func() {
		cancel()
		if open && <-heard && err != nil {
			l.pending = true
		}
	}()
	for {
		select {
		case something := <-heard:
			if open = false; something {
				return nil
			}
			heard = nil // wait without it for the rest of the time
		case <-woken:
			return nil
		case <-closed:
			return formsvc.ErrStoreClosed
		case <-limit.Done():
			return ctx.Err()
		}
	}
}

// listen returns true after a notification, false when ctx ends or the connection fails.
func (l *listener) listen(ctx context.Context) bool {
	if l.pending {
		l.pending = false
		return true
	}
	if l.conn == nil {
		// Deliveries may have been queued while there was no connection.
		return l.connect(ctx)
	}
	n, err := l.conn.WaitForNotification(ctx)
	// A connection that is only silent until ctx ends is kept.
	if err != nil && (ctx.Err() == nil || l.conn.IsClosed()) {
		l.drop()
	}
	return n != nil
}

func (l *listener) connect(ctx context.Context) bool {
	now := time.Now()
	if now.Before(l.retryAt) {
		return false
	}
	l.retryAt = now.Add(connectPause)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, l.config.Copy())
	if err != nil {
		return false
	}
	l.conn = conn
	var name string
	if err = conn.QueryRow(ctx, "SELECT "+channel).Scan(&name); err == nil {
		_, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{name}.Sanitize())
	}
	if err != nil {
		l.drop()
		return false
	}
	return true
}

func (l *listener) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_ = l.conn.Close(ctx)
	l.conn = nil
}

// close waits for the Wait under way, if any. There must be none afterwards.
func (l *listener) close() {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.conn != nil {
		l.drop()
	}
	l.retryAt = time.Now().Add(time.Hour)
}

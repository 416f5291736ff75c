package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/formsvc/toolkit/formsvc"
)

// channel is the expression for what processes with the same tables notify each
// other on: other schemas of the database may have such tables too.
const channel = `'formsvc_' || (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = 'formsvc_deliveries'::regclass)`

// Wait implements delivery.Queue. It also returns when another process queued
// deliveries, as far as it can learn of that: see [Options.NoListen].
func (s *Store) Wait(ctx context.Context, d time.Duration) error {
	if err := s.records.Usable(ctx); err != nil {
		return err
	}
	s.notifier.waitBegins()
	defer s.notifier.waitEnds()
	l := s.listener
	if l == nil || d <= 0 || !l.turn.TryLock() { // one listens for all
		return s.records.Wait(ctx, d)
	}
	defer l.turn.Unlock()
	return l.wait(ctx, d, s.records.Woken(), s.records.Closed())
}

const (
	// connectPause is how long to leave a server alone after connecting failed,
	// or was given up because there was work to do.
	connectPause = 3 * time.Second
	// connectTimeout bounds connecting, and closing the connection.
	connectTimeout = 5 * time.Second
	// drainTimeout is how long to look for more of the notifications that piled
	// up while nobody waited.
	drainTimeout = 200 * time.Microsecond
)

// A listener hears of deliveries that other processes queued. Whatever fails is
// not told: who waits looks into the queue from time to time anyway. It has no
// goroutine between calls.
type listener struct {
	config *pgx.ConnConfig

	turn    sync.Mutex // held by who uses what is below
	conn    *pgx.Conn  // nil: to be opened
	retryAt time.Time
	pending bool // something was heard that nobody was told of
	drain   bool // more may have piled up
}

// wait returns when something is heard or woken, when the store closes, when ctx
// ends, or after d. The caller holds the turn.
func (l *listener) wait(ctx context.Context, d time.Duration, woken, closed <-chan struct{}) (err error) {
	limit, cancel := context.WithTimeout(ctx, d)
	heard := make(chan bool, 1)
	go func() { heard <- l.listen(limit) }()
	open := true // heard has something to come
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
			heard = nil // the rest of the time passes without it
		case <-woken:
			return nil
		case <-closed:
			return formsvc.ErrStoreClosed
		case <-limit.Done():
			return ctx.Err()
		}
	}
}

// listen returns true when it heard something, false when ctx ends or the
// connection fails.
func (l *listener) listen(ctx context.Context) bool {
	if l.pending {
		l.pending = false
		return true
	}
	if l.conn == nil {
		// What was queued while there was no connection is not known.
		return l.connect(ctx)
	}
	if l.drain {
		l.drain = false
		for l.next(ctx, drainTimeout) {
			l.pending = true
		}
		if l.pending {
			l.pending = false
			return true
		}
		if l.conn == nil {
			return false
		}
	}
	l.drain = l.next(ctx, 0)
	return l.drain
}

// next waits for one notification. It drops a connection that fails; one that is
// just quiet until ctx ends can be used again.
func (l *listener) next(ctx context.Context, d time.Duration) bool {
	if l.conn == nil {
		return false
	}
	wait := ctx
	if d > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	n, err := l.conn.WaitForNotification(wait)
	if err != nil && (wait.Err() == nil || l.conn.IsClosed()) {
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
	l.drain = true
	return true
}

func (l *listener) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_ = l.conn.Close(ctx)
	l.conn = nil
}

// close waits for the Wait that is in progress, if any. There must be none after.
func (l *listener) close() {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.conn != nil {
		l.drop()
	}
	l.retryAt = time.Now().Add(time.Hour)
}

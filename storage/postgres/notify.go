package postgres

import (
	"context"
	"sync"
	"time"
)

const (
	// notifyPause is how long after one notification the next is sent at the
	// earliest: they all say the same.
	notifyPause = 5 * time.Millisecond
	// notifyTimeout bounds sending one.
	notifyTimeout = 5 * time.Second
	// ownEngine is how long after a Wait this process is taken to have an engine
	// that sees to its own deliveries, so that nobody else needs to know.
	ownEngine = 2 * time.Second
)

// A notifier tells other processes that deliveries were queued, never in the
// transaction that queued them: the server makes those wait for each other. It
// has a goroutine only while there is something to send.
type notifier struct {
	send func(ctx context.Context)

	mu       sync.Mutex
	waits    int // in progress
	lastWait time.Time
	busy     bool // the goroutine is there
	again    bool // and has one more to send
	closed   bool
	sending  sync.WaitGroup
}

func newNotifier(s *Store) *notifier {
	return &notifier{send: func(ctx context.Context) {
		// When it fails, others find the work when they next look.
		_, _ = s.db.ExecContext(ctx, "SELECT pg_notify("+channel+", '')")
	}}
}

func (n *notifier) waitBegins() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waits++
}

func (n *notifier) waitEnds() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waits--
	n.lastWait = time.Now()
}

// tell has a notification sent. It does not wait for that.
func (n *notifier) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed || n.waits > 0 || time.Since(n.lastWait) < ownEngine:
	case n.busy:
		n.again = true
	default:
		n.busy = true
		n.sending.Go(n.run)
	}
}

func (n *notifier) run() {
	for more := true; more; {
		ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
		n.send(ctx)
		cancel()
		time.Sleep(notifyPause)
		n.mu.Lock()
		more, n.again = n.again, false
		n.busy = more
		n.mu.Unlock()
	}
}

// close sends what is to be sent, and no more after that.
func (n *notifier) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.sending.Wait()
}

package postgres

import (
	"context"
	"sync"
	"time"
)

const (
	// notifyPause is the shortest time between two notifications, which all say the same.
	notifyPause = 5 * time.Millisecond
	// notifyTimeout limits sending a notification.
	notifyTimeout = 5 * time.Second
	// ownEngine is how long after a Wait this process is assumed to have an engine for
	// its own deliveries, so that other processes aren't notified.
	ownEngine = 2 * time.Second
)

// A notifier tells other processes that deliveries were queued. It never does so in the
// transaction that queued them, because the server serializes such transactions. It has a
// goroutine only while there is something to send.
type notifier struct {
	send func(ctx context.Context)

	mu       sync.Mutex
	waits    int // calls under way
	lastWait time.Time
	busy     bool // the goroutine runs
	again    bool // and has one more notification to send
	closed   bool
	sending  sync.WaitGroup
}

func newNotifier(s *Store) *notifier {
	return &notifier{send: func(ctx context.Context) {
		// If it fails, other processes find the work at their next poll.
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

// tell sends a notification without waiting for it.
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

// close sends what is queued, and nothing after that.
func (n *notifier) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.sending.Wait()
}

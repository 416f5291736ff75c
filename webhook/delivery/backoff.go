package delivery

import (
	"context"
	"math/rand/v2"
	"time"
)

// The pauses after failed calls of the queue. The longest one is also the longest time until a
// recovered queue is noticed.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// A backoff makes pauses that double from one to the next. The zero value is
// ready.
type backoff struct{ last time.Duration }

// next returns the next pause. Half of it is random, so that processes don't all retry a recovered
// store at the same time.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, firstPause), maxPause)
	half := b.last / 2
	return half + rand.N(half) //nolint:gosec // jitter, not a secret
}

func (b *backoff) reset() { b.last = 0 }

// sleep waits for d or the end of ctx, and reports whether ctx is still active.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

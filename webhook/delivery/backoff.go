package delivery

import (
	"context"
	"math/rand/v2"
	"time"
)

// The pauses after failed calls of the queue. The longest is also how long it
// takes at most to notice that the queue is back.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// A backoff makes pauses that double from one to the next. The zero value is
// ready.
type backoff struct{ last time.Duration }

// next returns the next pause. A random half of it keeps processes that lost
// the same store from coming back to it at the same time.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, firstPause), maxPause)
	half := b.last / 2
	return half + rand.N(half) //nolint:gosec // jitter, not a secret
}

func (b *backoff) reset() { b.last = 0 }

// sleep returns after d, or when ctx ends, and reports whether ctx goes on.
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

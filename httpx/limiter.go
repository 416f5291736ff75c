package httpx

import (
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limiterSize is the smallest number of names that a limiter remembers. It remembers at most twice as many.
const limiterSize = 5_000

// A limiter has a token bucket for each name. It drops the names that were unused the longest, so that it stays small.
// It is safe for concurrent use.
type limiter struct {
	rate  rate.Limit
	burst int

	mu    sync.Mutex
	young map[string]*rate.Limiter // used since old was filled
	old   map[string]*rate.Limiter
}

func newLimiter(r rate.Limit, burst int) *limiter {
	return &limiter{rate: r, burst: burst, young: make(map[string]*rate.Limiter)}
}

// take takes a token. If there is none, it returns the wait for the next one.
func (l *limiter) take(name string, now time.Time) (wait time.Duration, ok bool) {
	bucket := l.bucket(name)
	r := bucket.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait <= 0 {
		return 0, true
	}
	r.CancelAt(now)
	return wait, false
}

func (l *limiter) bucket(name string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.young[name]
	if bucket != nil {
		return bucket
	}
	if bucket = l.old[name]; bucket == nil {
		bucket = rate.NewLimiter(l.rate, l.burst)
	}
	if len(l.young) >= limiterSize {
		l.old, l.young = l.young, make(map[string]*rate.Limiter)
	}
	l.young[name] = bucket
	return bucket
}

// seconds returns a wait for Retry-After: in whole seconds, rounded up, and at least one.
func seconds(wait time.Duration) string {
	return strconv.Itoa(wholeSeconds(wait, 1))
}

func wholeSeconds(wait time.Duration, least int) int {
	return max(int(math.Ceil(wait.Seconds())), least)
}

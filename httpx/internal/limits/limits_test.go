package limits

import (
	"strconv"
	"testing"
	"time"
)

// A limiter forgets the names that were unused the longest, and no other.
func TestLimiterForgetsTheOldest(t *testing.T) {
	l, now := NewLimiter(1, 3), time.Now()
	for range l.Burst {
		l.Take("busy", now)
	}
	for i := range 3 * Size {
		l.Take(strconv.Itoa(i), now)
		if _, ok := l.Take("busy", now); ok {
			t.Fatalf("a name that is used all the time is forgotten after %d others", i)
		}
	}
	if n := l.buckets.Len(); n != Size {
		t.Errorf("%d names are remembered", n)
	}
}

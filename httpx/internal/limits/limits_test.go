package limits

import (
	"strconv"
	"testing"
	"time"
)

// A limiter forgets the names that were unused the longest, and no other.
func TestLimiterForgetsTheOldest(t *testing.T) {
	l, now := &Limiter{Rate: 1, Burst: 3}, time.Now()
	for range l.Burst {
		l.Take("busy", now)
	}
	for i := range 3 * Size {
		l.Take(strconv.Itoa(i), now)
		if _, ok := l.Take("busy", now); ok {
			t.Fatalf("a name that is used all the time is forgotten after %d others", i)
		}
	}
	if n := len(l.young) + len(l.old); n > 2*Size || n < Size {
		t.Errorf("%d names are remembered", n)
	}
}

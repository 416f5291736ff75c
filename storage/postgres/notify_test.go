package postgres

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// sent returns a notifier that records when it sends.
func sent(times *[]time.Duration, takes time.Duration) *notifier {
	start := time.Now()
	return &notifier{send: func(context.Context) {
		*times = append(*times, time.Since(start))
		time.Sleep(takes)
	}}
}

func TestNotificationsAreSpaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		n := sent(&times, 0)
		for range 12 {
			n.tell()
			time.Sleep(time.Millisecond)
		}
		n.close()
		want := []time.Duration{0, notifyPause, 2 * notifyPause, 3 * notifyPause} // the last one after the last call of tell
		if !slices.Equal(times, want) {
			t.Errorf("sent at %v, want %v", times, want)
		}
		n.tell()
		synctest.Wait()
		n.close()
		if len(times) != len(want) {
			t.Error("sent after close")
		}
	})
}

func TestALoneNotificationIsSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		n := sent(&times, 0)
		n.tell()
		time.Sleep(time.Minute)
		n.tell()
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, time.Minute}; !slices.Equal(times, want) {
			t.Errorf("sent at %v, want %v", times, want)
		}
	})
}

// Sending is slow: callers don't wait, and one more notification is enough for all of
// them.
func TestTellDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		n := sent(&times, time.Second)
		start := time.Now()
		for range 10 {
			n.tell()
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("callers waited for %v", waited)
		}
		n.close() // waits for the notification to be sent
		if want := []time.Duration{0, time.Second + notifyPause}; !slices.Equal(times, want) {
			t.Errorf("sent at %v, want %v", times, want)
		}
	})
}

func TestOwnEngineNeedsNoNotification(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		n := sent(&times, 0)
		n.waitBegins()
		time.Sleep(time.Hour)
		n.tell()
		n.waitEnds()
		n.tell()
		time.Sleep(ownEngine - time.Nanosecond)
		n.tell()
		synctest.Wait()
		if len(times) != 0 {
			t.Errorf("sent at %v, while the engine is here", times)
		}
		time.Sleep(time.Nanosecond)
		n.tell()
		n.close()
		if len(times) != 1 {
			t.Errorf("sent %d times after the engine left, want once", len(times))
		}
	})
}

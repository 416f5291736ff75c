package delivery_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

func TestShutdownReleasesHangingDeliveries(t *testing.T) {
	for _, tt := range []struct{ option, takes time.Duration }{
		{0, 10 * time.Second},
		{3 * time.Second, 3 * time.Second},
		{-1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			stop := run(t, q, delivery.Options{
				Transport: roundTrip(hang), DrainTimeout: tt.option, Retries: []time.Duration{},
				OnFailure: unexpected(t),
			})
			q.add("d1", endpoint("a"), "body")
			time.Sleep(time.Second)
			begin := time.Now()
			stop()
			equal(t, time.Since(begin), tt.takes, "Run returned after %v")
			r := q.get("d1")
			if r.result != 0 || len(r.attempts) != 0 || r.claim.Attempts != 0 || !r.until.IsZero() {
				t.Errorf("counted or not released: %+v", r)
			}
			if !r.due.Equal(time.Now()) {
				t.Errorf("due %v, want now", r.due)
			}
		})
	}
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		rec := &recorder{next: func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(6 * time.Second):
				return answer(http.StatusOK)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}}
		stop := run(t, q, delivery.Options{Transport: rec, Concurrency: 4})
		for _, id := range []string{"d1", "d2", "d3"} {
			q.add(id, endpoint(id), "body")
		}
		time.Sleep(time.Second / 2) // they aren't slow yet, so there is no room for the third
		begin := time.Now()
		stop()
		equal(t, time.Since(begin), 5500*time.Millisecond, "Run returned after %v")
		equal(t, q.count(delivery.Delivered), 2, "%d delivered")
		if r := q.get("d3"); len(rec.seen()) != 2 || r.claim.Lease != 0 {
			t.Errorf("claimed after the end: %+v", r)
		}
	})
}

// Run returns even if the queue is down.
func TestShutdownDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.onFinish = func([]delivery.Outcome) error { return errOutage }
		stop := run(t, q, delivery.Options{
			Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200) }),
		})
		q.add("d1", endpoint("a"), "body")
		time.Sleep(time.Second)
		begin := time.Now()
		stop()
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("Run returned after %v", took)
		}
		if r := q.get("d1"); r.result != 0 || r.until.IsZero() {
			t.Errorf("delivery %+v", r)
		}
	})
}

// A shutdown doesn't lose outcomes that the queue accepts late but in time.
func TestShutdownFlushesAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		start := time.Now()
		q.onFinish = func([]delivery.Outcome) error {
			if time.Since(start) < 4*time.Second {
				return errOutage
			}
			return nil
		}
		stop := run(t, q, delivery.Options{
			Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200) }),
		})
		for _, id := range []string{"d1", "d2", "d3"} {
			q.add(id, endpoint("a"), "body")
		}
		time.Sleep(time.Second)
		stop()
		equal(t, q.count(delivery.Delivered), 3, "%d delivered")
	})
}

// A run that ends during a call of the queue sends nothing, and releases what the call has claimed.
func TestShutdownDuringACall(t *testing.T) {
	pause := func() error {
		time.Sleep(2 * time.Second)
		return nil
	}
	for name, tt := range map[string]struct {
		slow   func(q *memQueue)
		leases int
	}{
		"Ready":    {func(q *memQueue) { q.onReady = pause }, 0},
		"Claim":    {func(q *memQueue) { q.onClaim = func(delivery.ClaimRequest) error { return pause() } }, 1},
		"Payloads": {func(q *memQueue) { q.onLoad = func([]string) error { return pause() } }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			tt.slow(q)
			rec := &recorder{next: ok}
			q.add("d1", endpoint("a"), "body")
			stop := run(t, q, delivery.Options{Transport: rec})
			time.Sleep(time.Second)
			stop()
			r := q.get("d1")
			if int(r.claim.Lease) != tt.leases || !r.until.IsZero() || r.result != 0 || len(rec.seen()) != 0 {
				t.Errorf("during %s: %d requests, %+v", name, len(rec.seen()), r)
			}
		})
	}
}

package delivery_test

import (
	"context"
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
			if took := time.Since(begin); took != tt.takes {
				t.Errorf("Run returned after %v, want %v", took, tt.takes)
			}
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
		stop := run(t, q, delivery.Options{Transport: rec, Concurrency: 4, SlowAfter: time.Minute})
		for _, id := range []string{"d1", "d2", "d3"} {
			q.add(id, endpoint(id), "body")
		}
		time.Sleep(time.Second)
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("Run returned after %v", took)
		}
		if n := q.count(delivery.Delivered); n != 2 {
			t.Errorf("%d delivered", n)
		}
		if r := q.get("d3"); len(rec.seen()) != 2 || r.claim.Lease != 0 {
			t.Errorf("claimed after the end: %+v", r)
		}
	})
}

// A run that ends during Ready claims nothing.
func TestShutdownDuringReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.onReady = func() error {
			time.Sleep(2 * time.Second)
			return nil
		}
		q.add("d1", endpoint("a"), "body")
		stop := run(t, q, delivery.Options{Transport: roundTrip(ok)})
		time.Sleep(time.Second)
		stop()
		if r := q.get("d1"); r.claim.Lease != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// A claim that is under way when the context ends is released.
func TestShutdownDuringClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.onClaim = func(delivery.ClaimRequest) error {
			time.Sleep(2 * time.Second)
			return nil
		}
		rec := &recorder{next: func(*http.Request) (*http.Response, error) { return answer(200) }}
		q.add("d1", endpoint("a"), "body")
		stop := run(t, q, delivery.Options{Transport: rec})
		time.Sleep(time.Second)
		stop()
		r := q.get("d1")
		if r.claim.Lease != 1 || !r.until.IsZero() || r.result != 0 || len(rec.seen()) != 0 {
			t.Errorf("%d requests, %+v", len(rec.seen()), r)
		}
	})
}

// No request starts after the end, even if its payload is being loaded.
func TestShutdownDuringPayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.onLoad = func([]string) error {
			time.Sleep(2 * time.Second)
			return nil
		}
		rec := &recorder{next: ok}
		stop := run(t, q, delivery.Options{Transport: rec})
		q.add("d1", endpoint("a"), "body")
		time.Sleep(time.Second)
		stop()
		r := q.get("d1")
		if r.claim.Lease != 1 || !r.until.IsZero() || r.result != 0 || len(rec.seen()) != 0 {
			t.Errorf("%d requests, %+v", len(rec.seen()), r)
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
		if n := q.count(delivery.Delivered); n != 3 {
			t.Errorf("%d delivered", n)
		}
	})
}

func TestRunAfterEnd(t *testing.T) {
	q := newQueue()
	q.add("d1", endpoint("a"), "body")
	engine := newEngine(t, q, delivery.Options{Transport: roundTrip(hang)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := engine.Run(ctx); err != nil {
		t.Error(err)
	}
	if r := q.get("d1"); r.claim.Lease != 0 {
		t.Error("claimed")
	}
}

package delivery_test

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// Prefetched deliveries are released when the context ends, not when the last request does.
func TestShutdownReleasesPrefetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var slow atomic.Bool
		rec := &recorder{next: func(*http.Request) (*http.Response, error) {
			if slow.Load() {
				time.Sleep(800 * time.Millisecond)
			}
			time.Sleep(time.Millisecond)
			return answer(200)
		}}
		stop := run(t, q, delivery.Options{Transport: rec, PerEndpoint: 4})
		q.addTo("busy", 1, 1000)
		time.Sleep(20 * time.Millisecond)
		slow.Store(true)
		time.Sleep(10 * time.Millisecond)
		sent := len(rec.seen())
		if leased := q.leased(); leased < 50 {
			t.Fatalf("%d leased: nothing is prefetched", leased)
		}
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		time.Sleep(10 * time.Millisecond)
		equal(t, q.leased(), 4, "%d leased")
		<-stopped
		if n := len(rec.seen()); n != sent || q.delivered("busy") != sent || q.leased() != 0 {
			t.Errorf("%d sent after the end, %d of %d recorded", n-sent, q.delivered("busy"), sent)
		}
	})
}

// If an endpoint begins to hang, all its deliveries except those in flight are released for other
// processes, without losing an attempt.
func TestHangingEndpointReturnsPrefetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var hangs atomic.Bool
		rec := &recorder{next: func(r *http.Request) (*http.Response, error) {
			if hangs.Load() {
				return hang(r)
			}
			time.Sleep(time.Millisecond)
			return answer(200)
		}}
		run(t, q, delivery.Options{Transport: rec, PerEndpoint: 4})
		q.addTo("busy", 1, 1000)
		time.Sleep(20 * time.Millisecond)
		hangs.Store(true)
		time.Sleep(900 * time.Millisecond)
		if leased := q.leased(); leased < 50 {
			t.Fatalf("%d leased: nothing is prefetched", leased)
		}
		time.Sleep(200 * time.Millisecond)
		equal(t, q.leased(), 4, "%d leased")
		time.Sleep(2 * time.Minute)
		hangs.Store(false)
		time.Sleep(time.Hour)
		attempts := 0
		q.mu.Lock()
		for _, r := range q.rows {
			attempts += len(r.attempts)
		}
		q.mu.Unlock()
		if n := len(rec.seen()); q.delivered("busy") != 1000 || attempts != n {
			t.Errorf("%d delivered, %d attempts for %d requests", q.delivered("busy"), attempts, n)
		}
	})
}

// leased returns how many deliveries are claimed.
func (q *memQueue) leased() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(q.rows), func(r *row) bool { return r.result != 0 || r.until.IsZero() }))
}

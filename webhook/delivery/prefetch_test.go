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

// checkOnce fails the test unless each delivery of the endpoint was sent and recorded once.
func checkOnce(t *testing.T, q *memQueue, rec *recorder, endpoint string, n int) {
	t.Helper()
	seen := make(map[string]bool)
	for _, c := range rec.seen() {
		if seen[c.delivery] {
			t.Errorf("%s was sent twice", c.delivery)
		}
		seen[c.delivery] = true
	}
	if q.delivered(endpoint) != n || len(seen) != n {
		t.Errorf("%d delivered, %d sent, want %d", q.delivered(endpoint), len(seen), n)
	}
}

func TestBacklogIsDeliveredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.onClaim = func(delivery.ClaimRequest) error {
			time.Sleep(4 * time.Millisecond)
			return nil
		}
		var most, now atomic.Int64
		rec := &recorder{next: func(*http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(3 * time.Millisecond)
			now.Add(-1)
			return answer(200)
		}}
		q.addTo("busy", 1, 5000)
		begin := time.Now()
		run(t, q, delivery.Options{Transport: rec, PerEndpoint: 8})
		for q.delivered("busy") < 5000 {
			time.Sleep(time.Millisecond)
		}
		checkOnce(t, q, rec, "busy", 5000)
		if most.Load() != 8 {
			t.Errorf("%d at once, want the window", most.Load())
		}
		// Eight at once take 1.875 s without any waiting.
		if took := time.Since(begin); took > 1950*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

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
		if leased := q.leased(); leased != 4 {
			t.Errorf("%d leased, want those in flight", leased)
		}
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
		if leased := q.leased(); leased != 4 {
			t.Errorf("%d leased, want those in flight", leased)
		}
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

// RunOnce also ends after prefetched deliveries were released.
func TestRunOnceSendsPrefetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		n := 0
		rec := &recorder{}
		rec.next = func(*http.Request) (*http.Response, error) {
			if n++; n%50 == 0 {
				return answer(500)
			}
			time.Sleep(time.Millisecond)
			return answer(200)
		}
		q.addTo("busy", 1, 500)
		got, err := newEngine(t, q, delivery.Options{Transport: rec, PerEndpoint: 1}).RunOnce(t.Context())
		if err != nil || got != 500 || q.delivered("busy") != 490 || q.leased() != 0 {
			t.Errorf("%d attempts, %d delivered, %d leased", got, q.delivered("busy"), q.leased())
		}
	})
}

// leased returns how many deliveries are claimed.
func (q *memQueue) leased() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(q.rows), func(r *row) bool { return r.result != 0 || r.until.IsZero() }))
}

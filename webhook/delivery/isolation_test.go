package delivery_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// A gauge counts the requests in flight for each host.
type gauge struct {
	mu        sync.Mutex
	now, peak map[string]int
}

func newGauge() *gauge { return &gauge{now: make(map[string]int), peak: make(map[string]int)} }

func (g *gauge) wrap(next roundTrip) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		host := r.URL.Hostname()
		for _, key := range []string{host, "all"} {
			g.add(key, 1)
			defer g.add(key, -1)
		}
		return next(r)
	}
}

func (g *gauge) add(key string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now[key] += n
	g.peak[key] = max(g.peak[key], g.now[key])
}

func TestHangingEndpointDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, g := newQueue(), newGauge()
		rec := &recorder{next: g.wrap(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Host, "hanging") {
				return hang(r)
			}
			time.Sleep(10 * time.Millisecond)
			return answer(200)
		})}
		for i := range 100 {
			q.add(fmt.Sprint("h", i), endpoint("hanging"), "body")
		}
		for i := range 900 {
			q.add(fmt.Sprint("d", i), endpoint(fmt.Sprint("e", i%9)), "body")
		}
		stop := run(t, q, delivery.Options{Transport: rec, Concurrency: 32, PerEndpoint: 4})
		time.Sleep(2 * time.Second)
		if n := q.count(delivery.Delivered); n != 900 {
			t.Errorf("%d of 900 delivered", n)
		}
		time.Sleep(63 * time.Second)
		stop()
		if g.peak["hanging.example"] != 4 {
			t.Errorf("%d requests to the hanging endpoint at once", g.peak["hanging.example"])
		}
		if g.peak["all"] > 32 {
			t.Errorf("%d requests at once", g.peak["all"])
		}
		// Its slots are used again as soon as they are free.
		hanging := 0
		for _, c := range rec.seen() {
			if c.delivery[0] == 'h' {
				hanging++
			}
		}
		if hanging != 12 {
			t.Errorf("%d requests to the hanging endpoint in 65 seconds, want 3 rounds of 4", hanging)
		}
	})
}

// Each claim continues with the endpoint after the one served last.
func TestClaimsRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		rec := &recorder{next: func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return answer(200)
		}}
		for i := range 8 {
			for _, e := range []string{"a", "b", "c", "d"} {
				q.add(fmt.Sprint(e, i), endpoint(e), "body")
			}
		}
		run(t, q, delivery.Options{Transport: rec, Concurrency: 1})
		time.Sleep(8*time.Second + time.Millisecond)
		got := ""
		for _, c := range rec.seen() {
			got += c.delivery[:1]
		}
		if got != "abcdabcda" {
			t.Errorf("served %q", got)
		}
	})
}

// A notice that takes long holds up its own endpoint only.
func TestSlowNoticeDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, g := newQueue(), newGauge()
		for i := range 20 {
			q.add(fmt.Sprint("f", i), endpoint("failing"), "body")
			q.add(fmt.Sprint("d", i), endpoint("healthy"), "body")
		}
		stop := run(t, q, delivery.Options{
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.URL.Hostname() == "failing.example" {
					return answer(500)
				}
				return answer(200)
			}),
			Retries: []time.Duration{}, Concurrency: 8, PerEndpoint: 3,
			OnFailure: func(ctx context.Context, f delivery.Failure) {
				g.add(f.Endpoint, 1)
				defer g.add(f.Endpoint, -1)
				time.Sleep(10 * time.Second)
			},
		})
		time.Sleep(5 * time.Second)
		if n := q.count(delivery.Delivered); n != 20 {
			t.Errorf("%d of 20 delivered", n)
		}
		if n := q.count(delivery.Failed); n != 3 {
			t.Errorf("%d failed", n)
		}
		time.Sleep(time.Hour)
		stop()
		if q.count(delivery.Failed) != 20 || g.peak["failing"] != 3 {
			t.Errorf("%d failed, %d notices at once", q.count(delivery.Failed), g.peak["failing"])
		}
	})
}

// Only what there is room for is claimed.
func TestClaimsOnlyForFreeSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		for i := range 50 {
			q.add(fmt.Sprint("d", i), endpoint(fmt.Sprint("e", i%10)), "body")
		}
		stop := run(t, q, delivery.Options{Transport: roundTrip(hang), Concurrency: 7, PerEndpoint: 2})
		time.Sleep(20 * time.Second)
		leased := 0
		for i := range 50 {
			if !q.get(fmt.Sprint("d", i)).until.IsZero() {
				leased++
			}
		}
		if leased != 7 {
			t.Errorf("%d leased", leased)
		}
		stop()
		for _, req := range q.requests {
			if req.Limit < 1 || req.Limit > 7 || req.PerEndpoint != 2 || req.Lease != time.Minute {
				t.Errorf("request %+v", req)
			}
			for endpoint, n := range req.Busy {
				if n < 1 || n > 2 {
					t.Errorf("busy %s: %d", endpoint, n)
				}
			}
		}
	})
}

// Work that arrives is sent at once, whatever the poll interval is.
func TestWakesUpWithoutPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		rec := &recorder{next: ok}
		run(t, q, delivery.Options{Transport: rec, PollInterval: 1000 * time.Hour})
		for i := range 5 {
			time.Sleep(time.Hour)
			added, claims := time.Now(), q.claims()
			q.add(fmt.Sprint("d", i), endpoint("a"), "body")
			synctest.Wait()
			if calls := rec.seen(); len(calls) != i+1 || !calls[i].at.Equal(added) {
				t.Fatalf("event %d: calls %v", i, calls)
			}
			// Another after every outcome would be waste.
			if n := q.claims() - claims; n != 1 {
				t.Errorf("event %d took %d claims", i, n)
			}
		}
	})
}

// Room that appears while a claim is on its way is not overlooked.
func TestRoomDuringClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.onClaim = func(delivery.ClaimRequest) error {
			time.Sleep(time.Second)
			return nil
		}
		rec := &recorder{next: func(*http.Request) (*http.Response, error) {
			time.Sleep(1500 * time.Millisecond)
			return answer(200)
		}}
		start := time.Now()
		q.add("a1", endpoint("a"), "body")
		q.add("a2", endpoint("a"), "body")
		run(t, q, delivery.Options{Transport: rec, PerEndpoint: 1, PollInterval: time.Hour})
		time.Sleep(2 * time.Second)
		// It is claimed from 2 s to 3 s. The first request ends at 2.5 s.
		q.add("b1", endpoint("b"), "body")
		time.Sleep(8 * time.Second)
		got := make(map[string]time.Duration)
		for _, c := range rec.seen() {
			got[c.delivery] = c.at.Sub(start)
		}
		want := map[string]time.Duration{"a1": time.Second, "b1": 3 * time.Second, "a2": 4 * time.Second}
		if !maps.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

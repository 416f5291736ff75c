package delivery_test

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// figures are Metrics in memory.
type figures struct {
	mu       sync.Mutex
	attempts map[string]int // by class and duration
	inFlight map[string]int
	peak     map[string]int
	now      int // blocked
	most     int
}

func newFigures() *figures {
	return &figures{attempts: make(map[string]int), inFlight: make(map[string]int), peak: make(map[string]int)}
}

func (f *figures) metrics() delivery.Metrics {
	return delivery.Metrics{Attempt: f.Attempt, InFlight: f.InFlight, Blocked: f.Blocked}
}

func (f *figures) Attempt(class string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts[fmt.Sprint(class, " ", d)]++
}

func (f *figures) InFlight(bulkhead string, delta int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight[bulkhead] += delta
	f.peak[bulkhead] = max(f.peak[bulkhead], f.inFlight[bulkhead])
}

func (f *figures) Blocked(delta int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += delta
	f.most = max(f.most, f.now)
}

// bulkheads returns the deliveries in flight by bulkhead.
func (f *figures) bulkheads() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.inFlight)
}

func (f *figures) blocked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, m := newQueue(), newFigures()
		stop := run(t, q, delivery.Options{
			Metrics: m.metrics(), Retries: []time.Duration{},
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				switch r.URL.Hostname() {
				case "hangs.example":
					return hang(r)
				case "fails.example":
					return answer(500)
				}
				time.Sleep(10 * time.Millisecond)
				return answer(200)
			}),
		})
		for i := range 5 {
			q.add(fmt.Sprint("d", i), endpoint("works"), "body")
		}
		q.add("h1", endpoint("hangs"), "body")
		q.add("f1", endpoint("fails"), "body")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := m.bulkheads(), map[string]int{"fast": 0, "slow": 1}; !maps.Equal(got, want) {
			t.Errorf("in flight %v, want %v", got, want)
		}
		time.Sleep(time.Minute)
		stop()
		if want := map[string]int{" 10ms": 5, "status 0s": 1, "timeout 30s": 1}; !maps.Equal(m.attempts, want) {
			t.Errorf("attempts %v, want %v", m.attempts, want)
		}
		if want := map[string]int{"fast": 0, "slow": 0}; !maps.Equal(m.inFlight, want) || m.peak["fast"] < 3 {
			t.Errorf("in flight %v, want %v; at most %v", m.inFlight, want, m.peak)
		}
	})
}

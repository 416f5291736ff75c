package delivery_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// A backlog needs no poll: whatever pauses the queue and the receiver make, the engine continues
// until nothing is left.
func TestBacklogNeedsNoPoll(t *testing.T) {
	for seed := range uint64(16) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			var mu sync.Mutex
			r := rand.New(rand.NewPCG(seed, 2))
			pause := func(most time.Duration) {
				mu.Lock()
				d := time.Duration(r.Int64N(int64(most)))
				if r.IntN(200) == 0 {
					d *= 300 // some requests become slow
				}
				mu.Unlock()
				time.Sleep(d)
			}
			q.onClaim = func(delivery.ClaimRequest) error { pause(5 * time.Millisecond); return nil }
			q.onLoad = func([]string) error { pause(2 * time.Millisecond); return nil }
			q.onFinish = func([]delivery.Outcome) error { pause(5 * time.Millisecond); return nil }
			rec := roundTrip(func(*http.Request) (*http.Response, error) {
				pause(6 * time.Millisecond)
				return answer(200)
			})
			q.addTo("busy", 1+int(seed%3), 1000)
			begin := time.Now()
			stop := run(t, q, delivery.Options{
				Transport: rec, Concurrency: 8 << (seed % 4), PerEndpoint: 4, PollInterval: time.Hour,
			})
			for q.delivered("busy") < 1000*(1+int(seed%3)) {
				time.Sleep(time.Second)
				if took := time.Since(begin); took > 10*time.Minute {
					t.Fatalf("seed %d: %d delivered in %v, %d leased", seed, q.delivered("busy"), took, q.leased())
				}
			}
			stop()
		})
	}
}

package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// most returns the largest number of concurrent requests to the host.
func (g *gauge) most(host string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.peak[host]
}

// at returns how many requests to the endpoint are in flight.
func (g *gauge) at(endpoint string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now[endpoint+".example"]
}

// receivers are a transport. Those whose name begins with "hanging" hang while
// hang is set, those that begin with "slow" take 2 seconds, all others 10 ms.
type receivers struct {
	*gauge
	*recorder
	hang atomic.Bool
}

func newReceivers() *receivers {
	w := &receivers{gauge: newGauge()}
	w.recorder = &recorder{next: w.wrap(func(r *http.Request) (*http.Response, error) {
		switch {
		case w.hang.Load() && strings.HasPrefix(r.URL.Host, "hanging"):
			return hang(r)
		case strings.HasPrefix(r.URL.Host, "slow"):
			time.Sleep(2 * time.Second)
		default:
			time.Sleep(10 * time.Millisecond)
		}
		return answer(http.StatusOK)
	})}
	return w
}

// addTo queues n deliveries to each of m endpoints with that name.
func (q *memQueue) addTo(name string, m, n int) {
	for i := range n {
		for e := range m {
			id := fmt.Sprintf("%s%d", name, e)
			q.add(fmt.Sprintf("%s-%d-%d", id, i, time.Now().UnixNano()), endpoint(id), "body")
		}
	}
}

// delivered returns how many deliveries to endpoints with that name are done.
func (q *memQueue) delivered(name string) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.rows {
		if r.result == delivery.Delivered && strings.HasPrefix(r.claim.Endpoint, name) {
			n++
		}
	}
	return n
}

// warmUp makes the engine learn endpoints with that name.
func warmUp(t *testing.T, q *memQueue, name string, m int) {
	t.Helper()
	q.addTo(name, m, 10)
	time.Sleep(2 * time.Second)
	if got := q.delivered(name); got != 10*m {
		t.Fatalf("%d of %d delivered before anything hangs", got, 10*m)
	}
}

// Ten of twenty receivers begin to hang. The others get new deliveries at once, whatever the
// backlog of those that hang.
func TestHalfOfTheReceiversHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQueue(), newReceivers()
		run(t, q, delivery.Options{Transport: w})
		warmUp(t, q, "hanging", 10)
		warmUp(t, q, "healthy", 10)
		w.hang.Store(true)
		q.addTo("hanging", 10, 100)
		for i := range 50 {
			before := q.delivered("healthy")
			q.addTo("healthy", 10, 1)
			// The request takes 10 ms, and it can take 5 ms until the queue is asked.
			rounds := 1
			if i == 0 {
				rounds = 2 // not detected yet, but at least five slots were left
			}
			time.Sleep(time.Duration(rounds)*10*time.Millisecond + 5*time.Millisecond)
			synctest.Wait()
			if got := q.delivered("healthy") - before; got != 10 {
				t.Fatalf("%d of 10 delivered in time", got)
			}
			time.Sleep(time.Second)
		}
		equal(t, w.at("hanging0"), 1, "%d requests at an endpoint that hangs")
	})
}

// A failed endpoint is probed by one request at a time, and regains its window by successes.
func TestRecoveringReceiverRegainsItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQueue(), newReceivers()
		w.hang.Store(true)
		run(t, q, delivery.Options{Concurrency: 64, PerEndpoint: 8, Transport: w})
		q.addTo("hanging", 1, 100)
		time.Sleep(95 * time.Second)
		if len(w.seen()) != 4 || w.most("hanging0.example") != 1 {
			t.Errorf("%d requests in 95 s, %d at once", len(w.seen()), w.most("hanging0.example"))
		}
		w.hang.Store(false)
		// The probe that hangs ends at 120 s; then 96 are left and the retries.
		time.Sleep(25*time.Second + time.Millisecond)
		var at []int
		for range 8 {
			synctest.Wait()
			at = append(at, w.at("hanging0"))
			time.Sleep(10 * time.Millisecond)
		}
		equal(t, fmt.Sprint(at), "[1 2 4 8 8 8 8 8]", "requests at once: %s")
	})
}

// A mail server hangs, with mails to 200 addresses. Webhooks get new deliveries at once, and each mail is retried.
func TestMailServerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQueue(), newReceivers()
		var working atomic.Bool
		run(t, q, delivery.Options{Transport: w, Mail: func(ctx context.Context, _ delivery.Mail) error {
			if !working.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}})
		warmUp(t, q, "healthy", 10)
		for i := range 200 {
			e := endpoint(fmt.Sprintf("mail%d", i))
			e.URL = "mailto:" + e.ID + "@example.com"
			q.add(e.ID, e, "body")
		}
		for range 100 {
			before := q.delivered("healthy")
			q.addTo("healthy", 10, 1)
			time.Sleep(15 * time.Millisecond)
			synctest.Wait()
			if got := q.delivered("healthy") - before; got != 10 {
				t.Fatalf("%d of 10 delivered in time", got)
			}
			time.Sleep(time.Second)
		}
		q.addTo("new", 1, 1)
		time.Sleep(delivery.DefaultTimeout)
		equal(t, q.delivered("new"), 1, "%d delivered to a webhook that nothing is known about")
		working.Store(true)
		time.Sleep(2 * time.Hour)
		equal(t, q.delivered("mail"), 200, "%d mails sent")
	})
}

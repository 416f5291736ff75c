package delivery_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// A memQueue is a queue with leases and fencing, in memory.
type memQueue struct {
	onClaim  func(delivery.ClaimRequest) error // an error stands for an outage
	onLoad   func(events []string) error
	onFinish func([]delivery.Outcome) error

	mu       sync.Mutex
	rows     []*row
	payloads map[string][]byte
	requests []delivery.ClaimRequest
	refused  int // outcomes
	wake     chan struct{}
}

type row struct {
	claim    delivery.Claim
	due      time.Time
	until    time.Time // the lease's end, if there is one
	result   delivery.Result
	attempts []delivery.Attempt
}

func newQueue() *memQueue {
	return &memQueue{payloads: make(map[string][]byte), wake: make(chan struct{}, 1)}
}

// add queues one delivery that is due now. Its event has the same identifier.
func (q *memQueue) add(id string, endpoint delivery.Endpoint, payload string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.payloads[id] = []byte(payload)
	q.rows = append(q.rows, &row{due: time.Now(), claim: delivery.Claim{
		ID: id, EventID: id, Event: "response.created", Endpoint: endpoint,
	}})
	q.signal()
}

func (q *memQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *memQueue) Claim(_ context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	if err := hook(q.onClaim, req); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, req)
	ready := make(map[string][]*row)
	slices.SortStableFunc(q.rows, func(a, b *row) int { return a.due.Compare(b.due) })
	for _, r := range q.rows {
		if r.result == 0 && !r.due.After(req.Now) && !r.until.After(req.Now) {
			ready[r.claim.Endpoint.ID] = append(ready[r.claim.Endpoint.ID], r)
		}
	}
	order := slices.Sorted(maps.Keys(ready))
	first, _ := slices.BinarySearch(order, req.After+"\x00")
	order = append(order[first:], order[:first]...)
	var claims []delivery.Claim
	for round, before := 0, -1; len(claims) > before && len(claims) < req.Limit; round++ {
		before = len(claims)
		for _, endpoint := range order {
			if round >= min(len(ready[endpoint]), req.PerEndpoint-req.Busy[endpoint]) || len(claims) >= req.Limit {
				continue
			}
			r := ready[endpoint][round]
			r.claim.Lease++
			r.until = req.Now.Add(req.Lease)
			claims = append(claims, r.claim)
		}
	}
	return claims, nil
}

func (q *memQueue) Payloads(_ context.Context, events []string) (map[string][]byte, error) {
	if err := hook(q.onLoad, events); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.payloads), nil
}

func (q *memQueue) Finish(_ context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	if err := hook(q.onFinish, outcomes); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	accepted := make([]bool, len(outcomes))
	for i, o := range outcomes {
		at := slices.IndexFunc(q.rows, func(r *row) bool {
			return r.claim.ID == o.ID && r.claim.Lease == o.Lease && r.result == 0
		})
		if at < 0 {
			q.refused++
			continue
		}
		r := q.rows[at]
		accepted[i], r.until, r.due = true, time.Time{}, o.Due
		if o.Result == delivery.Delivered || o.Result == delivery.Failed {
			r.result = o.Result
		} else {
			q.signal()
		}
		if o.Result != delivery.Released {
			r.claim.Attempts++
			r.attempts = append(r.attempts, o.Attempt)
		}
	}
	return accepted, nil
}

// Wait also returns when something becomes due, so that tests see exact times.
func (q *memQueue) Wait(ctx context.Context, d time.Duration) error {
	q.mu.Lock()
	now := time.Now()
	for _, r := range q.rows {
		for _, t := range []time.Time{r.due, r.until} {
			if r.result == 0 && t.After(now) {
				d = min(d, t.Sub(now))
			}
		}
	}
	q.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-q.wake:
	case <-time.After(d):
	}
	return nil
}

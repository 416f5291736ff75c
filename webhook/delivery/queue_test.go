package delivery_test

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// A memQueue is a queue with leases and fencing, in memory.
type memQueue struct {
	onReady  func() error // an error simulates an outage
	onClaim  func(delivery.ClaimRequest) error
	onLoad   func(events []string) error
	onFinish func([]delivery.Outcome) error
	onNoted  func([]string) error

	mu        sync.Mutex
	rows      []*row
	endpoints map[string]delivery.Endpoint
	payloads  map[string]delivery.Payload
	notices   []*notice
	requests  []delivery.ClaimRequest
	looks     int // calls of Ready
	refused   int // outcomes
	wake      chan struct{}
}

type row struct {
	claim    delivery.Claim
	due      time.Time
	until    time.Time // the lease's end, if there is one
	result   delivery.Result
	attempts []delivery.Attempt
}

type notice struct {
	delivery.Failure
	until time.Time // the lease's end
	noted bool
}

func newQueue() *memQueue {
	return &memQueue{
		endpoints: make(map[string]delivery.Endpoint), payloads: make(map[string]delivery.Payload), wake: make(chan struct{}, 1),
	}
}

// add queues one delivery that is due now. Its event is "event-" and the same
// identifier.
func (q *memQueue) add(id string, endpoint delivery.Endpoint, payload string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endpoints[endpoint.ID] = endpoint
	q.payloads["event-"+id] = delivery.Payload{Body: []byte(payload)}
	q.rows = append(q.rows, &row{due: time.Now(), claim: delivery.Claim{
		ID: id, EventID: "event-" + id, Event: "response.created", Endpoint: endpoint.ID, Size: len(payload),
	}})
	q.signal()
}

func (q *memQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (r *row) isDue(now time.Time) bool {
	return r.result == 0 && !r.due.After(now) && !r.until.After(now)
}

func (q *memQueue) Ready(_ context.Context, now time.Time) ([]delivery.Endpoint, error) {
	if q.onReady != nil {
		if err := q.onReady(); err != nil {
			return nil, err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.looks++
	var ready []delivery.Endpoint
	seen := make(map[string]bool)
	for _, r := range q.rows {
		if id := r.claim.Endpoint; r.isDue(now) && !seen[id] {
			seen[id] = true
			ready = append(ready, q.endpoints[id])
		}
	}
	slices.SortFunc(ready, func(a, b delivery.Endpoint) int { return strings.Compare(a.ID, b.ID) })
	return ready, nil
}

func (q *memQueue) Claim(_ context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	if err := hook(q.onClaim, req); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, req)
	due := make(map[string][]*row)
	for _, r := range q.rows {
		if r.isDue(req.Now) {
			due[r.claim.Endpoint] = append(due[r.claim.Endpoint], r)
		}
	}
	var claims []delivery.Claim
	for _, s := range req.Shares {
		rank := func(r *row) int {
			if s.LateFirst {
				return (int(r.claim.Kind) + 2) % 3
			}
			return int(r.claim.Kind)
		}
		rows := due[s.Endpoint]
		slices.SortStableFunc(rows, func(a, b *row) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), a.due.Compare(b.due))
		})
		for _, r := range rows[:min(s.N, len(rows))] {
			r.claim.Lease++
			r.until = req.Now.Add(req.Lease)
			claims = append(claims, r.claim)
		}
	}
	return claims, nil
}

func (q *memQueue) Payloads(_ context.Context, events []string) (map[string]delivery.Payload, error) {
	if err := hook(q.onLoad, events); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	payloads := make(map[string]delivery.Payload, len(events))
	for _, id := range events {
		if p, ok := q.payloads[id]; ok {
			payloads[id] = p
		}
	}
	return payloads, nil
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
			return r.claim.ID == o.ID && r.claim.Endpoint == o.Endpoint && r.claim.Lease == o.Lease && r.result == 0
		})
		if at < 0 {
			q.refused++
			continue
		}
		accepted[i] = true
		q.finish(q.rows[at], &o)
	}
	return accepted, nil
}

func (q *memQueue) finish(r *row, o *delivery.Outcome) {
	r.until, r.due = time.Time{}, o.Due
	if o.Result != delivery.Released {
		r.claim.Attempts++
		r.attempts = append(r.attempts, o.Attempt)
	}
	switch o.Result {
	case delivery.Delivered:
		r.result = o.Result
	case delivery.Failed:
		r.result = o.Result
		if r.claim.Kind != delivery.Replay {
			q.notices = append(q.notices, &notice{Failure: q.failure(r, o.Attempt)})
		}
	case delivery.Postponed:
		r.claim.Kind = delivery.Retry
		q.signal()
	case delivery.Released:
		q.signal()
	}
}

func (q *memQueue) failure(r *row, a delivery.Attempt) delivery.Failure {
	e := q.endpoints[r.claim.Endpoint]
	u, _ := url.Parse(e.URL)
	return delivery.Failure{
		Delivery: r.claim.ID, EventID: r.claim.EventID, Event: r.claim.Event, Endpoint: e.ID, Account: e.Account, Host: u.Host,
		Attempts: r.claim.Attempts, Status: a.Status, Error: a.Error, At: a.StartedAt.Add(a.Duration),
	}
}

func (q *memQueue) Failures(_ context.Context, now, until time.Time, limit int) ([]delivery.Failure, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var due []delivery.Failure
	for _, n := range q.notices {
		if !n.noted && !n.until.After(now) && len(due) < limit {
			n.until = until
			due = append(due, n.Failure)
		}
	}
	return due, nil
}

func (q *memQueue) Noted(_ context.Context, deliveries []string) error {
	if err := hook(q.onNoted, deliveries); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range q.notices {
		n.noted = n.noted || slices.Contains(deliveries, n.Delivery)
	}
	return nil
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

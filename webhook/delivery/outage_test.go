package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

func ok(*http.Request) (*http.Response, error) { return answer(http.StatusOK) }

// If another process claims a delivery while its request is in flight, the outcome is not recorded.
func TestLostLeaseChangesNothing(t *testing.T) {
	for _, status := range []int{200, 500} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			q.add("d1", endpoint("a"), "body")
			stop := run(t, q, delivery.Options{
				Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					time.Sleep(20 * time.Second)
					return answer(status)
				}),
				Retries:   []time.Duration{},
				OnFailure: unexpected(t),
			})
			time.Sleep(10 * time.Second)
			until := time.Now().Add(time.Minute)
			q.update("d1", func(r *row) { r.claim.Lease, r.until = r.claim.Lease+1, until })
			time.Sleep(15 * time.Second)
			r := q.get("d1")
			if q.refused != 1 || r.result != 0 || !r.until.Equal(until) || len(r.attempts) != 0 {
				t.Errorf("%d refused, %+v", q.refused, r)
			}
			stop()
		})
	}
}

func TestFinishOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		start := time.Now()
		q.onFinish = func([]delivery.Outcome) error {
			if time.Since(start) < 40*time.Second {
				return errOutage
			}
			return nil
		}
		rec := &recorder{next: ok}
		run(t, q, delivery.Options{Transport: rec, Concurrency: 8, PerEndpoint: 4})
		for i := range 30 {
			q.add(fmt.Sprint("d", i), endpoint(fmt.Sprint("e", i)), "body")
		}
		time.Sleep(39 * time.Second)
		equal(t, len(rec.seen()), 4, "%d requests while nothing could be recorded")
		time.Sleep(11 * time.Second)
		equal(t, q.count(delivery.Delivered), 30, "%d delivered")
		sent := make(map[string]int)
		for _, c := range rec.seen() {
			sent[c.delivery]++
		}
		for id, n := range sent {
			equal(t, n, 1, "%s was sent %d times", id)
		}
	})
}

// An outcome that the queue refuses doesn't delay other endpoints, and other outcomes only briefly:
// they are recorded during their lease, so nothing is sent again. The duration is random, 20 to 40
// seconds.
func TestRefusedOutcomeDelaysNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		poison := func(o delivery.Outcome) bool { return o.ID[0] == 'p' }
		q.onFinish = func(outcomes []delivery.Outcome) error {
			time.Sleep(10 * time.Millisecond) // lets batches form
			if slices.ContainsFunc(outcomes, poison) {
				return errOutage
			}
			return nil
		}
		run(t, q, delivery.Options{Concurrency: 64, PerEndpoint: 8, Transport: roundTrip(ok)})
		for i := range 100 {
			q.add(fmt.Sprint("p", i), endpoint("poisonous"), "body")
			q.add(fmt.Sprint("d", i), endpoint("healthy"), "body")
		}
		time.Sleep(delivery.DefaultLease - time.Second)
		equal(t, q.count(delivery.Delivered), 100, "%d delivered")
	})
}

func TestClaimOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		start := time.Now()
		var tries atomic.Int32
		q.onClaim = func(delivery.ClaimRequest) error {
			if time.Since(start) < time.Minute {
				tries.Add(1)
				return errOutage
			}
			return nil
		}
		run(t, q, delivery.Options{Transport: roundTrip(ok)})
		q.add("d1", endpoint("a"), "body")
		time.Sleep(time.Minute + 5*time.Second)
		if r := q.get("d1"); r.result != delivery.Delivered {
			t.Errorf("delivery %+v", r)
		}
		if n := tries.Load(); n < 12 || n > 35 {
			t.Errorf("%d tries in a minute", n)
		}
	})
}

// A hangingQueue doesn't return from the first call of each kind.
type hangingQueue struct {
	*memQueue
	claim, load, finish sync.Once
}

func once(ctx context.Context, o *sync.Once) (err error) {
	o.Do(func() {
		<-ctx.Done()
		err = ctx.Err()
	})
	return err
}

func (q *hangingQueue) Claim(ctx context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	if err := once(ctx, &q.claim); err != nil {
		return nil, err
	}
	return q.memQueue.Claim(ctx, req)
}

func (q *hangingQueue) Payloads(ctx context.Context, events []string) (map[string]delivery.Payload, error) {
	if err := once(ctx, &q.load); err != nil {
		return nil, err
	}
	return q.memQueue.Payloads(ctx, events)
}

func (q *hangingQueue) Finish(ctx context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	if err := once(ctx, &q.finish); err != nil {
		return nil, err
	}
	return q.memQueue.Finish(ctx, outcomes)
}

// A call of the queue without a reply, as over a broken connection, times out: after 10 seconds
// with the default options.
func TestHangingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &hangingQueue{memQueue: newQueue()}
		rec := &recorder{next: ok}
		run(t, q, delivery.Options{Transport: rec})
		q.add("d1", endpoint("a"), "body")
		time.Sleep(32 * time.Second)
		r := q.get("d1")
		if r.result != delivery.Delivered || len(rec.seen()) != 1 {
			t.Errorf("%d requests, %+v", len(rec.seen()), r)
		}
	})
}

// If a claim took so long that its lease could end during the request, it isn't sent.
func TestLateClaimIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		first := true
		q.onLoad = func([]string) error {
			if first {
				first = false
				time.Sleep(25 * time.Second)
			}
			return nil
		}
		rec := &recorder{next: ok}
		start := time.Now()
		run(t, q, delivery.Options{Transport: rec})
		q.add("d1", endpoint("a"), "body")
		time.Sleep(time.Minute)
		calls, r := rec.seen(), q.get("d1")
		if len(calls) != 1 || calls[0].at.Sub(start) != 25*time.Second || r.claim.Lease != 2 || len(r.attempts) != 1 {
			t.Errorf("calls %v, %+v", calls, r)
		}
	})
}

// A delivery that can't be sent follows the retry schedule, so it is neither lost silently nor
// retried without pause.
func TestUnsendableDeliveriesFollowTheSchedule(t *testing.T) {
	tests := map[string]func(q *memQueue){
		delivery.ClassPayload: func(q *memQueue) { delete(q.payloads, "event-d1") },
		delivery.ClassSecret:  func(q *memQueue) { q.move("a", func(e *delivery.Endpoint) { e.Secret = "" }) },
		delivery.ClassURL:     func(q *memQueue) { q.move("a", func(e *delivery.Endpoint) { e.URL = "ftp://a.example/" }) },
	}
	for class, spoil := range tests {
		t.Run(class, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue()
				q.add("d1", endpoint("a"), "body")
				spoil(q)
				rec := &recorder{next: ok}
				var notices []delivery.Failure
				stop := run(t, q, delivery.Options{Transport: rec, OnFailure: func(_ context.Context, f delivery.Failure) error {
					notices = append(notices, f)
					return nil
				}})
				time.Sleep(time.Hour)
				stop()
				if len(rec.seen()) != 0 || len(notices) != 1 || notices[0].Error != class || notices[0].Attempts != 4 {
					t.Errorf("%d requests, notices %+v", len(rec.seen()), notices)
				}
			})
		})
	}
}

package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

func refuse(*http.Request) (*http.Response, error) { return answer(500) }

// A diary records the given notices and their times.
type diary struct {
	mu    sync.Mutex
	start time.Time
	given []string
}

func newDiary() *diary { return &diary{start: time.Now()} }

func (l *diary) add(f delivery.Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = append(l.given, fmt.Sprint(f.Delivery, " ", time.Since(l.start)))
}

func (l *diary) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.given)
}

func (q *memQueue) unnoted() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, notice := range q.notices {
		if !notice.noted {
			n++
		}
	}
	return n
}

// A notice whose OnFailure fails, or that isn't noted, is given again after its lease, or when the
// next engine starts after that.
func TestNoticesAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, l := newQueue(), newDiary()
		mailIsDown := true
		opts := delivery.Options{
			Transport: roundTrip(refuse), Retries: []time.Duration{}, Lease: 90 * time.Second,
			OnFailure: func(_ context.Context, f delivery.Failure) error {
				l.add(f)
				if mailIsDown {
					return errors.New("mail server: connection refused")
				}
				return nil
			},
		}
		q.add("d1", endpoint("a"), "body")
		stop := run(t, q, opts)
		time.Sleep(10 * time.Second)
		stop()
		mailIsDown = false
		q.onNoted = func([]string) error { return errOutage }
		time.Sleep(50 * time.Second)
		stop = run(t, q, opts) // leased until 90 s
		time.Sleep(100 * time.Second)
		stop()
		q.onNoted = nil
		time.Sleep(10 * time.Minute)
		stop = run(t, q, opts)
		time.Sleep(10 * time.Minute)
		stop()
		// The second engine asks each minute from 60 s on. It stops at 160 s.
		equal(t, l.String(), "[d1 0s d1 2m0s d1 12m40s]", "given %s")
		equal(t, q.unnoted(), 0, "not noted: %v")
	})
}

// Notices take no slots and are given eight at a time.
func TestSlowNoticesDelayNoDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, g := newQueue(), newGauge()
		for i := range 100 {
			q.add(fmt.Sprint("f", i), endpoint("failing"), "body")
			q.add(fmt.Sprint("d", i), endpoint("healthy"), "body")
		}
		run(t, q, delivery.Options{
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.URL.Hostname() == "failing.example" {
					return answer(500)
				}
				return answer(200)
			}),
			Retries: []time.Duration{},
			OnFailure: func(_ context.Context, f delivery.Failure) error {
				g.add(f.Endpoint, 1)
				defer g.add(f.Endpoint, -1)
				time.Sleep(3 * time.Second)
				return nil
			},
		})
		time.Sleep(time.Second)
		if d, f := q.count(delivery.Delivered), q.count(delivery.Failed); d != 100 || f != 100 {
			t.Errorf("%d delivered, %d failed", d, f)
		}
		time.Sleep(5 * time.Minute)
		if q.unnoted() != 0 || g.most("failing") != 8 {
			t.Errorf("%d not noted, %d at once", q.unnoted(), g.most("failing"))
		}
	})
}

// A call that doesn't end in time is canceled, so that others get their turn and no other process
// gets its lease meanwhile.
func TestHangingNoticeIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, l := newQueue(), newDiary()
		for i := range 3 {
			q.add(fmt.Sprint("d", i), endpoint("a"), "body")
		}
		run(t, q, delivery.Options{
			Transport: roundTrip(refuse), Retries: []time.Duration{},
			OnFailure: func(ctx context.Context, f delivery.Failure) error {
				if f.Delivery != "d1" {
					return nil
				}
				l.add(f)
				<-ctx.Done()
				l.add(f)
				return ctx.Err()
			},
		})
		time.Sleep(110 * time.Second)
		if q.unnoted() != 1 || l.String() != "[d1 0s d1 40s d1 1m40s]" {
			t.Errorf("%d not noted, d1 at %s", q.unnoted(), l)
		}
	})
}

// A shutdown starts no notice, and waits for running ones for a limited time.
func TestShutdownDuringNotice(t *testing.T) {
	for _, tt := range []struct {
		takes, stops time.Duration
		noted        int
	}{
		{5 * time.Second, 4 * time.Second, 8},
		{time.Minute, 10 * time.Second, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			q, l := newQueue(), newDiary()
			for i := range 20 {
				q.notices = append(q.notices, &notice{Failure: delivery.Failure{Delivery: fmt.Sprint("d", i)}})
			}
			stop := run(t, q, delivery.Options{
				Transport: roundTrip(ok),
				OnFailure: func(ctx context.Context, f delivery.Failure) error {
					l.add(f)
					select {
					case <-time.After(tt.takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				},
			})
			time.Sleep(time.Second)
			begin := time.Now()
			stop()
			equal(t, time.Since(begin), tt.stops, "Run returned after %v")
			if len(l.given) != 8 || 20-q.unnoted() != tt.noted {
				t.Errorf("%d given, %d noted", len(l.given), 20-q.unnoted())
			}
		})
	}
}

// A replay has one attempt, and its failure causes no notice.
func TestReplay(t *testing.T) {
	for status, want := range map[int]delivery.Result{200: delivery.Delivered, 500: delivery.Failed} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			q.add("d1", endpoint("a"), "body")
			q.update("d1", func(r *row) { r.claim.Kind, r.claim.Attempts = delivery.Replay, 1 })
			rec := &recorder{next: func(*http.Request) (*http.Response, error) { return answer(status) }}
			run(t, q, delivery.Options{Transport: rec, OnFailure: unexpected(t)})
			time.Sleep(time.Hour)
			r := q.get("d1")
			if r.result != want || len(r.attempts) != 1 || r.attempts[0].Number != 2 || len(rec.seen()) != 1 {
				t.Errorf("status %d: %d requests, %+v", status, len(rec.seen()), r)
			}
		})
	}
}

func TestRunOnceGivesNotices(t *testing.T) {
	t.Parallel()
	q := newQueue()
	q.add("d1", endpoint("a"), "body")
	q.notices = append(q.notices, &notice{Failure: delivery.Failure{Delivery: "other"}})
	given := make(map[string]bool)
	var mu sync.Mutex
	opts := delivery.Options{
		Transport: roundTrip(refuse), Retries: []time.Duration{},
		OnFailure: func(_ context.Context, f delivery.Failure) error {
			mu.Lock()
			defer mu.Unlock()
			given[f.Delivery] = true
			return nil
		},
	}
	if n, err := newEngine(t, q, opts).RunOnce(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if len(given) != 2 || q.unnoted() != 0 {
		t.Errorf("given %v", given)
	}
	q.notices[0].noted = false
	q.notices[0].until = time.Time{}
	q.onNoted = func([]string) error { return errOutage }
	if _, err := newEngine(t, q, opts).RunOnce(t.Context()); !errors.Is(err, errOutage) {
		t.Errorf("error %v", err)
	}
}

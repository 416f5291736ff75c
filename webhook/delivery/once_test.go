package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

func TestRunOnceDeliversEverythingDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		for i := range 40 {
			q.add(fmt.Sprint("d", i), endpoint(fmt.Sprint("e", i%3)), "body")
		}
		q.add("fails", endpoint("f"), "body")
		q.add("later", endpoint("e1"), "body")
		q.update("later", func(r *row) { r.due = r.due.Add(time.Hour) })
		engine := newEngine(t, q, delivery.Options{
			Concurrency: 6, PerEndpoint: 2,
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				if r.URL.Hostname() == "f.example" {
					return answer(503)
				}
				return answer(200)
			}),
		})
		n, err := engine.RunOnce(t.Context())
		if n != 41 || err != nil {
			t.Errorf("RunOnce: %d, %v", n, err)
		}
		equal(t, q.count(delivery.Delivered), 40, "%d delivered")
		if r := q.get("fails"); !r.due.After(time.Now()) || r.claim.Attempts != 1 {
			t.Errorf("retry %+v", r)
		}
		if n, err := engine.RunOnce(t.Context()); n != 0 || err != nil {
			t.Errorf("second RunOnce: %d, %v", n, err)
		}
		time.Sleep(time.Minute)
		if n, err := engine.RunOnce(t.Context()); n != 1 || err != nil {
			t.Errorf("RunOnce after a minute: %d, %v", n, err)
		}
	})
}

func TestRunOnceErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.add("d1", endpoint("a"), "body")
		engine := newEngine(t, q, delivery.Options{Transport: roundTrip(ok)})

		q.onClaim = func(delivery.ClaimRequest) error { return errOutage }
		if n, err := engine.RunOnce(t.Context()); n != 0 || !errors.Is(err, errOutage) {
			t.Errorf("claim: %d, %v", n, err)
		}
		q.onClaim, q.onLoad = nil, func([]string) error { return errOutage }
		if n, err := engine.RunOnce(t.Context()); n != 0 || !errors.Is(err, errOutage) {
			t.Errorf("payloads: %d, %v", n, err)
		}
		if r := q.get("d1"); !r.until.IsZero() {
			t.Error("not released")
		}
		q.onLoad = nil
		start := time.Now()
		q.onFinish = func([]delivery.Outcome) error {
			if time.Since(start) < 65*time.Second {
				return errOutage
			}
			return nil
		}
		// It is sent twice: the first lease ends during the outage.
		if n, err := engine.RunOnce(t.Context()); n != 1 || err == nil {
			t.Errorf("finish: %d, %v", n, err)
		}
		equal(t, q.count(delivery.Delivered), 1, "%d delivered")
	})
}

func TestRunOnceEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.add("d1", endpoint("a"), "body")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		n, err := newEngine(t, q, delivery.Options{Transport: roundTrip(hang)}).RunOnce(ctx)
		if n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("RunOnce: %d, %v", n, err)
		}
		equal(t, time.Since(start), 11*time.Second, "took %v")
		if r := q.get("d1"); !r.until.IsZero() || r.claim.Attempts != 0 {
			t.Errorf("not released: %+v", r)
		}
	})
}

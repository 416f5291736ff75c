package delivery_test

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// Delivery rules 1 to 3 of the documentation.
func TestFourAttemptsOnSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		rec := &recorder{next: func(r *http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second)
			return answer(http.StatusInternalServerError)
		}}
		var mu sync.Mutex
		var failures []delivery.Failure
		start := time.Now()
		stop := run(t, q, delivery.Options{Transport: rec, OnFailure: func(_ context.Context, f delivery.Failure) error {
			equal(t, q.get("d1").result, delivery.Failed, "OnFailure before the failure was recorded: %v")
			if !f.At.Equal(time.Now()) {
				t.Errorf("OnFailure %v after the failure", time.Since(f.At))
			}
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, f)
			return nil
		}})
		const body = `{"event":"response.created", "n":  1}`
		q.add("d1", endpoint("a"), body)
		time.Sleep(3 * time.Minute)
		q.move("a", func(e *delivery.Endpoint) { e.Secret = "rotated" })
		time.Sleep(time.Hour)
		stop()

		// Each attempt takes 2 s, and the delay starts when it has failed.
		want := []time.Duration{
			0,
			2*time.Second + time.Minute,
			4*time.Second + 6*time.Minute,
			6*time.Second + 36*time.Minute,
		}
		var got []time.Duration
		for i, c := range rec.seen() {
			got = append(got, c.at.Sub(start))
			equal(t, c.body, body, "attempt %d: body %q", i+1)
			secret := "secret-a"
			if i >= 2 {
				secret = "rotated"
			}
			equal(t, c.header.Get("x-service-signature"), sign(secret, body), "attempt %d: signature %q", i+1)
			equal(t, c.header.Get("x-service-attempt"), strconv.Itoa(i+1), "attempt %d: number %q", i+1)
			equal(t, c.header.Get("x-service-delivery"), "d1", "attempt %d: delivery %q", i+1)
		}
		if !slices.Equal(got, want) {
			t.Errorf("attempts at %v, want %v", got, want)
		}
		wantFailure := []delivery.Failure{{
			Delivery: "d1", EventID: "event-d1", Event: "response.created", Endpoint: "a", Account: "account-a",
			Host: "a.example", Attempts: 4, Status: 500, Error: delivery.ClassStatus, At: start.Add(want[3] + 2*time.Second),
		}}
		if !reflect.DeepEqual(failures, wantFailure) {
			t.Errorf("failures %+v, want %+v", failures, wantFailure)
		}
		checkAttempts(t, q.get("d1").attempts, start, want)
	})
}

func checkAttempts(t *testing.T, attempts []delivery.Attempt, start time.Time, at []time.Duration) {
	t.Helper()
	var want []delivery.Attempt
	for i, d := range at {
		want = append(want, delivery.Attempt{
			Number: i + 1, StartedAt: start.Add(d), Duration: 2 * time.Second,
			Status: 500, Error: "status", Answer: []byte("answer"),
		})
	}
	if !reflect.DeepEqual(attempts, want) {
		t.Errorf("attempts %+v, want %+v", attempts, want)
	}
}

func TestSuccessEndsTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var up atomic.Bool
		rec := &recorder{next: func(*http.Request) (*http.Response, error) {
			if up.Load() {
				return answer(http.StatusAccepted)
			}
			return answer(http.StatusServiceUnavailable)
		}}
		run(t, q, delivery.Options{Transport: rec, OnFailure: unexpected(t)})
		q.add("d1", endpoint("a"), "body")
		time.Sleep(30 * time.Second)
		up.Store(true)
		time.Sleep(time.Hour)
		r := q.get("d1")
		if len(rec.seen()) != 2 || r.result != delivery.Delivered || len(r.attempts) != 2 {
			t.Fatalf("%d requests, %+v", len(rec.seen()), r)
		}
		if a := r.attempts[1]; a.Error != "" || a.Status != 202 || a.Number != 2 {
			t.Errorf("last attempt %+v", a)
		}
	})
}

func TestTimeoutIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		start := time.Now()
		run(t, q, delivery.Options{Transport: roundTrip(hang)})
		q.add("d1", endpoint("a"), "body")
		time.Sleep(30*time.Second - 1)
		synctest.Wait()
		if r := q.get("d1"); len(r.attempts) != 0 {
			t.Fatalf("ended early: %+v", r)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		r := q.get("d1")
		if len(r.attempts) != 1 || r.attempts[0].Error != delivery.ClassTimeout || r.attempts[0].Duration != 30*time.Second {
			t.Fatalf("attempts %+v", r.attempts)
		}
		if want := start.Add(90 * time.Second); !r.due.Equal(want) {
			t.Errorf("due %v, want %v", r.due, want)
		}
	})
}

// drip is a body that sends a byte each second until the request is canceled.
type drip struct{ r *http.Request }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-d.r.Context().Done():
		return 0, d.r.Context().Err()
	case <-time.After(time.Second):
		return copy(p, "."), nil
	}
}

func (drip) Close() error { return nil }

// The deadline includes the response's body.
func TestTimeoutOfDrippingBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		run(t, q, delivery.Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: drip{r}}, nil
		})})
		q.add("d1", endpoint("a"), "body")
		time.Sleep(45 * time.Second)
		r := q.get("d1")
		if len(r.attempts) != 1 {
			t.Fatalf("attempts %+v", r.attempts)
		}
		a := r.attempts[0]
		if n := len(a.Answer); a.Error != delivery.ClassTimeout || a.Duration != 30*time.Second || a.Status != 200 || n != 29 && n != 30 {
			t.Errorf("attempt %+v", a)
		}
	})
}

package delivery_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// New deliveries are sent at once, whatever the poll interval.
func TestWakesUpWithoutPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		rec := &recorder{next: ok}
		run(t, q, delivery.Options{Transport: rec, PollInterval: 1000 * time.Hour})
		for i := range 5 {
			time.Sleep(time.Hour)
			added, claims, looks := time.Now(), q.claims(), q.looked()
			q.add(fmt.Sprint("d", i), endpoint("a"), "body")
			synctest.Wait()
			if calls := rec.seen(); len(calls) != i+1 || !calls[i].at.Equal(added) {
				t.Fatalf("event %d: calls %v", i, calls)
			}
			// An endpoint whose share was filled may have more. Asking again after every outcome
			// would be wasteful.
			claims, looks = q.claims()-claims, q.looked()-looks
			if claims > 2 || looks > 2 || i > 0 && (claims != 1 || looks != 1) {
				t.Errorf("event %d took %d claims and asked %d times", i, claims, looks)
			}
		}
	})
}

// Events for an endpoint without room don't cause endless queries.
func TestBusyEndpointNeedsFewQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		run(t, q, delivery.Options{Transport: roundTrip(hang)})
		for i := range 10_000 {
			q.add(fmt.Sprint("d", i), endpoint("a"), "body")
			time.Sleep(100 * time.Microsecond)
		}
		if n := q.looked(); n > 250 {
			t.Errorf("asked %d times in a second", n)
		}
	})
}

// Room that becomes free during a claim is noticed.
func TestRoomDuringAClaimIsNoticed(t *testing.T) {
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

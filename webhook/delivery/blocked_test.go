package delivery_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// The deliveries of an endpoint with an Err wait without losing attempts.
func TestBlockedEndpointLosesNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q, m := newQueue(), newFigures()
		blocked := endpoint("a")
		blocked.Err = errors.New("no key k7")
		q.add("d1", blocked, "body")
		q.add("d2", endpoint("b"), "body")
		rec := &recorder{next: ok}
		stop := run(t, q, delivery.Options{Transport: rec, Metrics: m.metrics(), Logger: slog.New(slog.NewTextHandler(&out, nil))})
		time.Sleep(150 * time.Second)
		if r := q.get("d1"); r.claim.Lease != 0 || len(rec.seen()) != 1 {
			t.Errorf("%d requests, %+v", len(rec.seen()), r)
		}
		equal(t, m.blocked(), 1, "%d blocked")
		q.move("a", func(e *delivery.Endpoint) { e.Err = nil })
		time.Sleep(2 * time.Second)
		if r := q.get("d1"); r.result != delivery.Delivered || len(r.attempts) != 1 {
			t.Errorf("%+v", r)
		}
		equal(t, m.blocked(), 0, "%d blocked")
		stop()
		if n := strings.Count(out.String(), "no key k7"); n != 3 {
			t.Errorf("%d warnings in two and a half minutes: %s", n, out.String())
		}
		for _, word := range []string{"secret-a", "hidden"} {
			if strings.Contains(out.String(), word) {
				t.Errorf("%q in %s", word, out.String())
			}
		}
	})
}

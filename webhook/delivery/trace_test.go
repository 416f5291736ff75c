package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

const traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// attempts is a Tracer that records its calls.
type attempts struct {
	mu    sync.Mutex
	begun []delivery.Sending
	ended []delivery.Outcome
}

type attemptKey struct{}

func (a *attempts) Attempt(
	ctx context.Context, s delivery.Sending, header http.Header,
) (context.Context, func(delivery.Outcome)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun = append(a.begun, s)
	header.Set("traceparent", fmt.Sprint("attempt-", len(a.begun)))
	header.Set("Tracestate", "vendor=1")
	header.Set("x-service-event", "forged")
	return context.WithValue(ctx, attemptKey{}, len(a.begun)), func(o delivery.Outcome) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ended = append(a.ended, o)
	}
}

// tracedQueue has one delivery, whose event has a trace.
func tracedQueue() *memQueue {
	q := newQueue()
	e := endpoint("a")
	e.URL = "https://a.example:8443/hook?token=hidden"
	e.Headers = http.Header{"Traceparent": {"own"}, "tracestate": {"own"}, "X-Own": {"own"}}
	q.add("d1", e, "body")
	q.payloads["event-d1"] = delivery.Payload{Body: []byte("body"), TraceParent: traced}
	return q
}

func TestTracer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, tracer := tracedQueue(), new(attempts)
		var seen []any // values that the transport finds in the context
		rec := &recorder{next: func(r *http.Request) (*http.Response, error) {
			seen = append(seen, r.Context().Value(attemptKey{}))
			switch len(seen) {
			case 1:
				return answer(500)
			case 2:
				return hang(r)
			}
			return answer(200)
		}}
		stop := run(t, q, delivery.Options{Transport: rec, Tracer: tracer})
		time.Sleep(time.Hour)
		stop()
		calls := rec.seen()
		if len(calls) != 3 || !slices.Equal(seen, []any{1, 2, 3}) {
			t.Fatalf("%d requests with the contexts of attempts %v", len(calls), seen)
		}
		for i, c := range calls {
			s := tracer.begun[i]
			if s.Claim.ID != "d1" || s.Claim.EventID != "event-d1" || s.Number != i+1 || s.Host != "a.example:8443" || s.TraceParent != traced {
				t.Errorf("attempt %d began as %+v", i+1, s)
			}
			if got, want := c.header["Traceparent"], []string{fmt.Sprint("attempt-", i+1)}; !slices.Equal(got, want) {
				t.Errorf("traceparent %q, want %q", got, want)
			}
			for name, want := range map[string]string{
				"Tracestate": "vendor=1", "X-Own": "own", "X-Service-Event": "response.created",
				"X-Service-Signature": sign("secret-a", "body"),
			} {
				if got := c.header.Values(name); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		}
		want := []string{"2 500 status", "2 0 timeout", "1 200 "}
		var got []string
		for _, o := range tracer.ended {
			got = append(got, fmt.Sprint(int(o.Result), " ", o.Attempt.Status, " ", o.Attempt.Error))
		}
		if !slices.Equal(got, want) {
			t.Errorf("attempts ended as %q, want %q", got, want)
		}
	})
}

package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
	"github.com/formsvc/toolkit/webhook/egress"
)

// Deliver to a receiver that is down for a moment, and to one that always fails. The queue of the
// example is in memory; a program uses one of the stores.
func Example() {
	verifier, _ := webhook.NewVerifier([]string{"the webhook's secret"}, nil)
	down := true
	mux := http.NewServeMux()
	mux.Handle("/recovers", verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := webhook.FromContext(r.Context())
		fmt.Printf("attempt %d: %s\n", d.Attempt, d.Body)
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		down = false
	})))
	server := httptest.NewServer(mux)
	defer server.Close()

	queue := newQueue()
	queue.add("d1", delivery.Endpoint{ID: "a", URL: server.URL + "/recovers", Secret: "the webhook's secret"}, `{"event":"response.created"}`)
	queue.add("d2", delivery.Endpoint{ID: "b", URL: server.URL + "/missing", Secret: "another secret"}, `{"event":"response.created"}`)

	policy, err := egress.New(&egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	engine, err := delivery.New(queue, &delivery.Options{
		Retries: []time.Duration{0}, // one retry at once; leave it out for the documented schedule
		// The receiver of the example is on this machine. Leave it out to send
		// to public addresses only.
		Control: policy.Control,
		OnFailure: func(_ context.Context, f delivery.Failure) error {
			fmt.Printf("delivery %s failed after %d attempts: %s %d\n", f.Delivery, f.Attempts, f.Error, f.Status)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A server calls engine.Run(ctx) instead.
	attempts, err := engine.RunOnce(context.Background())
	fmt.Println(attempts, "attempts", err)

	// Unordered output:
	// attempt 1: {"event":"response.created"}
	// attempt 2: {"event":"response.created"}
	// delivery d2 failed after 2 attempts: status 404
	// 4 attempts <nil>
}

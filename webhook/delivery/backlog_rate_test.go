package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// TestBacklogOfOneEndpointNeverWaitsForThePoll ends requests while the next claim is under way. The
// engine must notice the free room, even if the endpoint had none a moment before.
func TestBacklogOfOneEndpointNeverWaitsForThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1_000
		q := newQueue()
		for i := range n {
			q.add(fmt.Sprintf("d%04d", i), delivery.Endpoint{ID: "e1", URL: "http://receiver.test/", Secret: "secret"}, "{}")
		}
		var delivered atomic.Int32
		e, err := delivery.New(slowClaims{q}, &delivery.Options{
			Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				time.Sleep(time.Duration(delivered.Add(1)*7%20) * 100 * time.Microsecond)
				return answer(http.StatusOK)
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := e.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := delivered.Load(); got != n {
			t.Errorf("%d of %d delivered in five seconds of simulated time", got, n)
		}
	})
}

// slowClaims takes 3 ms for each claim.
type slowClaims struct{ delivery.Queue }

func (q slowClaims) Claim(ctx context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	time.Sleep(3 * time.Millisecond)
	return q.Queue.Claim(ctx, req)
}

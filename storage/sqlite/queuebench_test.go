package sqlite_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// BenchmarkQueue claims 128 deliveries, reads their payloads and records them as
// delivered in two batches of 64.
func BenchmarkQueue(b *testing.B) {
	const batch = 128
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "forms.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	queueDeliveries(b, s, batch*max(b.N, 100))
	ready, err := s.Ready(b.Context(), time.Now())
	if err != nil || len(ready) != 1 {
		b.Fatal(len(ready), err)
	}
	var claiming, loading, finishing time.Duration
	b.ResetTimer()
	for range b.N {
		begin := time.Now()
		claims, err := s.Claim(b.Context(), delivery.ClaimRequest{
			Now: begin, Lease: time.Minute, Shares: []delivery.Share{{Endpoint: ready[0].ID, N: batch}},
		})
		if err != nil || len(claims) != batch {
			b.Fatal(len(claims), err)
		}
		claimed := time.Now()
		events, outcomes := make([]string, batch), make([]delivery.Outcome, batch)
		for i, c := range claims {
			events[i] = c.EventID
			outcomes[i] = delivery.Outcome{
				ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: delivery.Delivered,
				Attempt: delivery.Attempt{Number: c.Attempts + 1, StartedAt: begin, Duration: time.Millisecond, Status: 200},
			}
		}
		if _, err := s.Payloads(b.Context(), events); err != nil {
			b.Fatal(err)
		}
		loaded := time.Now()
		for _, part := range [][]delivery.Outcome{outcomes[:batch/2], outcomes[batch/2:]} {
			if accepted, err := s.Finish(b.Context(), part); err != nil || !accepted[0] {
				b.Fatal(accepted, err)
			}
		}
		claiming, loading, finishing = claiming+claimed.Sub(begin), loading+loaded.Sub(claimed), finishing+time.Since(loaded)
	}
	each := float64(b.N * batch)
	b.ReportMetric(float64(claiming.Nanoseconds())/each, "claim-ns")
	b.ReportMetric(float64(loading.Nanoseconds())/each, "payload-ns")
	b.ReportMetric(float64(finishing.Nanoseconds())/each, "finish-ns")
}

// queueDeliveries creates a webhook with at least n due deliveries.
func queueDeliveries(b *testing.B, s *sqlite.Store, n int) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	svc, campaign := newService(b, s)
	listen(b, svc, campaign.AccountID)
	r, err := svc.Responses.Create(b.Context(), campaign.Key(),
		formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}})
	must(err)
	key := formsvc.ResponseKey{AccountID: campaign.AccountID, CampaignID: campaign.ID, ID: r.ID}
	payload := bytes.Repeat([]byte("a"), 800)
	for made := 0; made < n; {
		events := make([]formsvc.Event, 1000)
		for i := range events {
			at := time.Now()
			events[i] = formsvc.Event{
				ID: formsvc.FloorID(at)[:24] + formsvc.ID(fmt.Sprintf("%012x", made+i)), AccountID: campaign.AccountID, CampaignID: campaign.ID, ResponseID: r.ID,
				Type: webhook.ResponseUpdated, Payload: payload, CreatedAt: at,
			}
		}
		_, err := s.UpdateResponse(b.Context(), key, func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			return formsvc.Change{Events: events}, nil
		})
		must(err)
		made += len(events)
	}
}

package sqlite_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
)

// BenchmarkCreateResponse writes responses with an event and a delivery each, from 64
// goroutines per processor, with and without group commit.
func BenchmarkCreateResponse(b *testing.B) {
	for name, limit := range map[string]int{"grouped": 0, "each": 1} {
		b.Run(name, func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "forms.db"), &sqlite.Options{GroupLimit: limit})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			svc, err := formsvc.New(s, nil)
			if err != nil {
				b.Fatal(err)
			}
			account, err := svc.Accounts.Create(b.Context(), "a")
			if err != nil {
				b.Fatal(err)
			}
			campaign, err := svc.Campaigns.Create(b.Context(), account.ID, formsvc.CampaignInput{Title: "c"})
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := svc.Webhooks.Create(b.Context(), account.ID, formsvc.WebhookInput{
				URL: "https://example.com/", Events: webhook.EventTypes(),
			}); err != nil {
				b.Fatal(err)
			}
			in := formsvc.ResponseInput{
				User: formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"},
				Answers: []formsvc.Answer{
					{Name: "colour", Value: []string{"green"}}, {Name: "size", Value: []string{"large"}},
					{Name: "comment", Value: []string{"It should arrive before the end of the month, if that is possible at all."}},
				},
			}
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := svc.Responses.Create(b.Context(), campaign.Key(), in); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkDeliverySample samples a day of a webhook with 200,000 deliveries in 24 parts,
// and in the most parts allowed.
func BenchmarkDeliverySample(b *testing.B) {
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "forms.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	svc, err := formsvc.New(s, nil)
	if err != nil {
		b.Fatal(err)
	}
	const day = 24 * time.Hour
	from := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	key := deliverEvenly(b, s, svc, from, day)
	for _, parts := range []int{24, formsvc.MaxSampleParts} {
		b.Run(strconv.Itoa(parts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				samples, err := svc.Deliveries.Sample(b.Context(), key, from, from.Add(day), parts, formsvc.MaxSampleEach)
				if err != nil || samples[parts-1].Pending != formsvc.MaxSampleEach {
					b.Fatal(samples, err)
				}
			}
		})
	}
}

// deliverEvenly creates a webhook with 200,000 deliveries spread over that time.
func deliverEvenly(b *testing.B, s *sqlite.Store, svc *formsvc.Service, from time.Time, length time.Duration) formsvc.WebhookKey {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	account, err := svc.Accounts.Create(b.Context(), "a")
	must(err)
	campaign, err := svc.Campaigns.Create(b.Context(), account.ID, formsvc.CampaignInput{Title: "c"})
	must(err)
	hook, _, err := svc.Webhooks.Create(b.Context(), account.ID, formsvc.WebhookInput{
		URL: "https://example.com/", Events: webhook.EventTypes(),
	})
	must(err)
	r, err := svc.Responses.Create(b.Context(), campaign.Key(),
		formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}})
	must(err)
	const units, each = 40, 5_000
	for unit := range units {
		events := make([]formsvc.Event, each)
		for i := range events {
			n := unit*each + i
			at := from.Add(length / (units * each) * time.Duration(n))
			events[i] = formsvc.Event{
				ID: formsvc.FloorID(at)[:24] + formsvc.ID(fmt.Sprintf("%012x", n)), AccountID: account.ID, CampaignID: campaign.ID,
				ResponseID: r.ID, Type: webhook.ResponseUpdated, Payload: []byte("{}"), CreatedAt: at,
			}
		}
		key := formsvc.ResponseKey{AccountID: account.ID, CampaignID: campaign.ID, ID: r.ID}
		_, err := s.UpdateResponse(b.Context(), key, func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			return formsvc.Change{Events: events}, nil
		})
		must(err)
	}
	return formsvc.WebhookKey{AccountID: account.ID, ID: hook.ID}
}

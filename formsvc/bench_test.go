package formsvc_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/storage/sqlite"
)

type benchStore interface {
	formsvc.Store
	Close() error
}

// BenchmarkRule measures creates of many callers, with a host's rule that only computes and without.
func BenchmarkRule(b *testing.B) {
	rule := func(_ context.Context, _ *formsvc.Campaign, _, after *formsvc.Response) error {
		return after.Answers.Each(func(_ string, values []string) error {
			if values[0] == "" {
				return &formsvc.Refusal{Code: "empty"}
			}
			return nil
		})
	}
	in := formsvc.ResponseInput{User: ada(), Answers: []formsvc.Answer{{Name: "message", Value: []string{"It has arrived, thank you."}}}}
	for name, open := range map[string]func() (benchStore, error){
		"memory":   func() (benchStore, error) { return memory.New(), nil },
		"sqlite":   func() (benchStore, error) { return sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "db"), nil) },
		"postgres": func() (benchStore, error) { return postgres.Open(b.Context(), postgrestest.DSN(b), nil) },
	} {
		b.Run(name, func(b *testing.B) {
			store := must(open())
			for name, check := range map[string]func(context.Context, *formsvc.Campaign, *formsvc.Response, *formsvc.Response) error{"with": rule, "without": nil} {
				svc := must(formsvc.New(store, &formsvc.Options{CheckResponse: check}))
				account := must(svc.Accounts.Create(b.Context(), name))
				c := must(svc.Campaigns.Create(b.Context(), account.ID, formsvc.CampaignInput{Title: "c"}))
				key := c.Key()
				b.Run(name, func(b *testing.B) {
					b.SetParallelism(16)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							must(svc.Responses.Create(b.Context(), key, in))
						}
					})
				})
			}
			noError(b, store.Close())
		})
	}
}

package formsvc_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"testing"
	"time"

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

func benchStores() map[string]func(*testing.B) (benchStore, error) {
	return map[string]func(*testing.B) (benchStore, error){
		"memory": func(*testing.B) (benchStore, error) { return memory.New(), nil },
		"sqlite": func(b *testing.B) (benchStore, error) {
			return sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "db"), nil)
		},
		"postgres": func(b *testing.B) (benchStore, error) { return postgres.Open(b.Context(), postgrestest.DSN(b), nil) },
	}
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
	for name, open := range benchStores() {
		b.Run(name, func(b *testing.B) {
			store := must(open(b))
			for name, check := range map[string]func(context.Context, *formsvc.Campaign, *formsvc.Response, *formsvc.Response) error{"with": rule, "without": nil} {
				svc := must(formsvc.New(store, &formsvc.Options{CheckResponse: check}))
				key := newCampaign(b, svc)
				b.Run(name, func(b *testing.B) {
					b.SetParallelism(16)
					b.RunParallel(func(pb *testing.PB) {
						for row, _ := range oldRows(1) {
							for pb.Next() {
								must(svc.Responses.Create(b.Context(), key, row.ResponseInput))
							}
						}
					})
				})
			}
			if err := store.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkImport measures rows: those that are new, the same ones again, and responses that one caller creates after another.
func BenchmarkImport(b *testing.B) {
	for name, open := range benchStores() {
		b.Run(name, func(b *testing.B) {
			store := must(open(b))
			svc := must(formsvc.New(store, nil))
			b.Run("create", func(b *testing.B) {
				key := newCampaign(b, svc)
				for row, _ := range oldRows(b.N) { // no errors
					must(svc.Responses.Create(b.Context(), key, row.ResponseInput))
				}
			})
			const rows = 10_000
			for _, again := range []bool{false, true} {
				b.Run(map[bool]string{false: "new", true: "again"}[again], func(b *testing.B) {
					for range b.N {
						b.StopTimer()
						key := newCampaign(b, svc)
						run := func(want formsvc.ImportReport) {
							if got := must(svc.Responses.Import(b.Context(), key, oldRows(rows), nil)); got.Imported != want.Imported || got.Existing != want.Existing {
								b.Fatalf("%+v", got)
							}
						}
						if again {
							run(formsvc.ImportReport{Imported: rows})
							b.StartTimer()
							run(formsvc.ImportReport{Existing: rows})
						} else {
							b.StartTimer()
							run(formsvc.ImportReport{Imported: rows})
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
				})
			}
			if err := store.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// newCampaign returns a campaign of a new account.
func newCampaign(b *testing.B, svc *formsvc.Service) formsvc.CampaignKey {
	b.Helper()
	account := must(svc.Accounts.Create(b.Context(), fmt.Sprint(time.Now().UnixNano())))
	c := must(svc.Campaigns.Create(b.Context(), account.ID, formsvc.CampaignInput{Title: "c"}))
	return c.Key()
}

// oldRows yields n rows of another system.
func oldRows(n int) iter.Seq2[formsvc.ImportRow, error] {
	in := formsvc.ResponseInput{User: ada(), Answers: []formsvc.Answer{{Name: "message", Value: []string{"It has arrived, thank you."}}}}
	return func(yield func(formsvc.ImportRow, error) bool) {
		for i := range n {
			at := start().Add(time.Duration(i-n) * time.Minute)
			if !yield(formsvc.ImportRow{ResponseInput: in, Reference: fmt.Sprintf("old-%d", i), CreatedAt: at}, nil) {
				return
			}
		}
	}
}

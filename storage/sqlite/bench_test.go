package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
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
			svc, campaign := newService(b, s)
			listen(b, svc, campaign.AccountID)
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

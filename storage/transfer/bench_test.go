package transfer_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

var benchRows = flag.Int("rows", 10_000, "how many responses BenchmarkCopy copies, with an event and a delivery each")

// BenchmarkCopy moves responses with an event and a delivery each, and compares them:
//
//	go test ./storage/transfer -run '^$' -bench Copy -benchtime 1x -rows 1000000
func BenchmarkCopy(b *testing.B) {
	for _, pair := range kinds {
		b.Run(pair[0]+"-to-"+pair[1], func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				from, to := newDatabase(b, pair[0]), newDatabase(b, pair[1])
				fillResponses(b, from, newWorld(b, from), *benchRows)
				b.StartTimer()
				if _, err := moved(b, from, to, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(*benchRows*b.N)/b.Elapsed().Seconds(), "responses/s")
		})
	}
}

// fillResponses adds responses of a usual size.
func fillResponses(t testing.TB, d database, w *world, n int) {
	t.Helper()
	s := d.open(t, false)
	p := s.Portable()
	tables := make(map[string]*bunstore.Table)
	for _, table := range bunstore.Tables() {
		tables[table.Name] = &table
	}
	payload := fmt.Appendf(nil, `{"event":"response.created","data":{"text":"%0600d"}}`, 7)
	webhook := formsvc.NewID(time.Now())
	for done := 0; done < n; {
		rows := make(map[string][][]any)
		for range min(5000, n-done) {
			done++
			at := time.UnixMilli(1_700_000_000_000 + int64(done))
			id, event, account := string(formsvc.NewID(at)), string(formsvc.NewID(at)), string(w.account)
			us := at.UnixMicro()
			rows["formsvc_responses"] = append(rows["formsvc_responses"], []any{
				id, account, string(w.campaign), fmt.Sprint("B", done), "pending", fmt.Sprintf("a%d@example.com", done), "Ada", "Lovelace",
				fmt.Sprintf(`{"rating":{"value":["%d"]},"text":{"value":["%0300d"]}}`, done%5, done), int64(1), us, us, bunstore.Never, event,
			})
			rows["formsvc_events"] = append(rows["formsvc_events"], []any{
				event, account, string(w.campaign), id, int64(1_000_000 + done), int64(0), int64(1), us, nil, payload, nil,
			})
			rows["formsvc_deliveries"] = append(rows["formsvc_deliveries"], []any{
				string(webhook), string(formsvc.NewID(at)), event, int64(1), us, int64(2), us, us, int64(len(payload)), int64(0), int64(1), int64(1),
			})
		}
		must(t, p.Write(t.Context(), func(c bun.IConn) error {
			for name, list := range rows {
				if err := p.Insert(t.Context(), c, tables[name], list); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	must(t, p.Write(t.Context(), func(c bun.IConn) error { return p.Finish(t.Context(), c, 0) }))
	must(t, s.Close())
}

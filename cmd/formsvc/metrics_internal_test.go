package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/certs"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A lateQueue is a store with a pool, whose oldest delivery has been due for a minute.
type lateQueue struct {
	*memory.Store
	pool
}

func (lateQueue) QueueStats(context.Context, time.Time, int64) (formsvc.QueueStats, error) {
	return formsvc.QueueStats{Pending: 3, OldestDue: time.Now().Add(-time.Minute)}, nil
}

type expiring struct{ certs.Source }

func (expiring) Expiry() time.Time { return time.Unix(1_800_000_000, 0) }

// TestMetricsText compares what is scraped with a file: dashboards and alerts depend on it.
func TestMetricsText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &lateQueue{Store: memory.New()}
		svc := must(formsvc.New(store, nil))
		m := newMetrics(svc, store, expiring{})
		engine := m.Delivery()
		engine.Attempt("", 20*time.Millisecond)
		engine.Attempt(delivery.ClassStatus, time.Second)
		engine.InFlight(delivery.BulkheadSlow, 2)
		engine.Blocked(1)
		_ = m.OnFailure(t.Context(), delivery.Failure{}) // always nil
		handler := m.Handler(http.NotFoundHandler())
		for _, path := range []string{"/v1/campaigns", "/console/x", "/f/token", "/elsewhere"} {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		}
		scrape := httptest.NewRecorder()
		promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		var got []byte
		for line := range strings.Lines(scrape.Body.String()) {
			if strings.Contains(line, "formsvc_") {
				got = append(got, line...)
			}
		}
		want, err := os.ReadFile("testdata/metrics.txt")
		if *update {
			err = os.WriteFile("testdata/metrics.txt", got, 0o644)
		}
		if err != nil || !*update && !bytes.Equal(got, want) {
			t.Errorf("%v; got\n%s", err, got)
		}
	})
}

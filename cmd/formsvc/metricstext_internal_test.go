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
)

type expiring struct{ certs.Source }

func (expiring) Expiry() time.Time { return time.Unix(1_800_000_000, 0) }

// TestMetricsText compares what is scraped, which dashboards and alerts read, with the file that holds it.
func TestMetricsText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics()
		m.watchQueue(func(context.Context) (formsvc.QueueStats, error) {
			return formsvc.QueueStats{Pending: 3, OldestDue: time.Now().Add(-time.Minute)}, nil
		})
		m.watchPool(new(pool))
		m.watch(expiring{})
		m.attempt("", 20*time.Millisecond)
		m.attempt("status", time.Second)
		m.addInFlight("slow", 2)
		m.addBlocked(1)
		m.failures.Inc()
		handler := m.requests.count(http.NotFoundHandler())
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

package promformsvc

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// series returns the value of every series except those of histograms, as name{label=value,…}.
func series(t testing.TB, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName() + labels(m)
			switch {
			case m.GetCounter() != nil:
				values[name] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				values[name] = m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				values[name+"_count"] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return values
}

func labels(m *dto.Metric) string {
	var list []string
	for _, l := range m.GetLabel() {
		list = append(list, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(list)
	return "{" + strings.Join(list, ",") + "}"
}

// The queue is queried at most every 5 seconds, however often it is scraped. While the query fails, the values are not a number.
func TestQueueMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked int
		var stats formsvc.QueueStats
		var failing error
		m, began := newMetrics(), time.Now()
		m.watchQueue(func(ctx context.Context) (formsvc.QueueStats, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the query has no time limit")
			}
			asked++
			return stats, failing
		})
		for i, x := range []struct {
			pass            time.Duration
			stats           formsvc.QueueStats
			err             error
			asked           int
			pending, oldest float64
		}{
			{0, formsvc.QueueStats{}, nil, 1, 0, 0},
			{4 * time.Second, formsvc.QueueStats{Pending: 9}, nil, 1, 0, 0},
			{time.Second, formsvc.QueueStats{Pending: 3, OldestDue: began.Add(-55 * time.Second)}, nil, 2, 3, 60},
			{2 * time.Second, formsvc.QueueStats{}, nil, 2, 3, 62}, // older by the time since the query
			{4 * time.Second, formsvc.QueueStats{}, errors.New("no"), 3, math.NaN(), math.NaN()},
			{time.Second, formsvc.QueueStats{}, nil, 3, math.NaN(), math.NaN()},
			{5 * time.Second, formsvc.QueueStats{Pending: 1, OldestDue: began.Add(time.Hour)}, nil, 4, 1, 0}, // by a clock that is ahead
		} {
			time.Sleep(x.pass)
			stats, failing = x.stats, x.err
			got := series(t, m)
			pending, oldest := got["formsvc_webhook_pending{}"], got["formsvc_webhook_oldest_due_seconds{}"]
			if asked != x.asked || fmt.Sprint(pending, oldest) != fmt.Sprint(x.pending, x.oldest) {
				t.Errorf("%d: asked %d times, got %v and %v; want %+v", i, asked, pending, oldest, x)
			}
		}
		if got := series(t, m)["formsvc_webhook_stats_errors_total{}"]; got != 1 {
			t.Errorf("%v errors", got)
		}
	})
}

// A response is counted with its status, however it is sent.
func TestRequestMetricsCount(t *testing.T) {
	t.Parallel()
	m := New(newService(t), nil)
	for method, answer := range map[string]http.HandlerFunc{
		http.MethodGet:  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) },
		http.MethodHead: func(http.ResponseWriter, *http.Request) {},
		http.MethodPost: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusConflict)
			w.WriteHeader(http.StatusOK)
		},
		"BREW": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		func() {
			defer func() { _ = recover() }()
			mux := http.NewServeMux()
			mux.Handle("/healthz", answer)
			m.Handler(mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/healthz", nil))
		}()
	}
	m.Handler(http.NewServeMux()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, "/elsewhere", nil))
	want := map[string]float64{
		"formsvc_http_requests_total{code=200,method=GET,route=/healthz}":  1,
		"formsvc_http_requests_total{code=200,method=HEAD,route=/healthz}": 1,
		"formsvc_http_requests_total{code=409,method=POST,route=/healthz}": 1,
		"formsvc_http_requests_total{code=0,method=other,route=/healthz}":  1,
		"formsvc_http_request_seconds{route=/healthz}_count":               4,
		"formsvc_http_requests_total{code=404,method=PUT,route=other}":     1,
		"formsvc_http_request_seconds{route=other}_count":                  1,
		"formsvc_http_in_flight{}":                                         0,
	}
	got := series(t, m)
	maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.HasPrefix(name, "formsvc_http_") })
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Each method of the API has its own series.
func TestMethodsOfTheAPIAreCounted(t *testing.T) {
	t.Parallel()
	m := New(newService(t), nil)
	for _, route := range httpx.Routes() {
		m.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(route.Method, "/", nil))
	}
	for name := range series(t, m) {
		if strings.Contains(name, "method=other") {
			t.Error(name)
		}
	}
}

// The functions for an engine change the metrics of deliveries, and the pool is asked when scraped.
func TestDeliveryAndPoolMetrics(t *testing.T) {
	t.Parallel()
	m := New(newService(t), &Options{Pool: func() sql.DBStats {
		return sql.DBStats{InUse: 2, Idle: 3, MaxOpenConnections: 7, WaitCount: 4, WaitDuration: 1500 * time.Millisecond}
	}})
	functions := m.Delivery()
	functions.Attempt("", time.Second)
	functions.Attempt(delivery.ClassTimeout, time.Second)
	functions.InFlight(delivery.BulkheadSlow, 2)
	functions.Blocked(1)
	if err := m.OnFailure(t.Context(), delivery.Failure{}); err != nil {
		t.Error(err)
	}
	got := series(t, m)
	for name, want := range map[string]float64{
		"formsvc_webhook_attempts_total{class=delivered}": 1, "formsvc_webhook_attempt_seconds{class=timeout}_count": 1,
		"formsvc_webhook_in_flight{lane=fast}": 0, "formsvc_webhook_in_flight{lane=slow}": 2, "formsvc_webhook_blocked{}": 1,
		"formsvc_webhook_failures_total{}": 1, "formsvc_webhook_pending{}": 0, "formsvc_db_connections{state=in_use}": 2,
		"formsvc_db_connections{state=idle}": 3, "formsvc_db_connections_max{}": 7, "formsvc_db_waits_total{}": 4, "formsvc_db_wait_seconds_total{}": 1.5,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
}

func newService(t *testing.T) *formsvc.Service {
	t.Helper()
	svc, err := formsvc.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

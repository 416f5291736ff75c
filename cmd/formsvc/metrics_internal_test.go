package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// series returns the value of every series except those of histograms, as name{label=value,…}.
func series(t testing.TB, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
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
			got := series(t, m.registry)
			pending, oldest := got["formsvc_webhook_pending{}"], got["formsvc_webhook_oldest_due_seconds{}"]
			if asked != x.asked || fmt.Sprint(pending, oldest) != fmt.Sprint(x.pending, x.oldest) {
				t.Errorf("%d: asked %d times, got %v and %v; want %+v", i, asked, pending, oldest, x)
			}
		}
		if got := series(t, m.registry)["formsvc_webhook_stats_errors_total{}"]; got != 1 {
			t.Errorf("%v errors", got)
		}
	})
}

// Every route has a series under its pattern, and clients can't create others.
func TestRequestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	m := newRouteNames()
	id := "0198b0e1-3e6f-7c1a-8a4e-0123456789ab"
	for _, route := range httpx.Routes() {
		segments := strings.Split(route.Pattern, "/")
		for i, s := range segments {
			if strings.HasPrefix(s, "{") {
				segments[i] = id
			}
		}
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: strings.Join(segments, "/")}}
		if got := m.route(r); got != route.Pattern {
			t.Errorf("%s is counted as %s", route.Pattern, got)
		}
	}
	for _, path := range []string{
		"", "*", "/v1", "/v1/campaigns/",
		"/v1/" + id, "/" + strings.Repeat("a", 10000), strings.Repeat("/"+id, 1000), "/v1/campaigns/" + id + "/responses/" + id + "/x",
	} {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}}
		if got := m.route(r); got != labelOther {
			t.Errorf("%.60q is counted as %s", path, got)
		}
	}
}

// A response is counted with its status, however it is sent.
func TestRequestMetricsCount(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newRequestMetrics(promauto.With(registry))
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
			r := httptest.NewRequest(method, "/healthz", nil)
			m.count(answer).ServeHTTP(httptest.NewRecorder(), r)
		}()
	}
	want := map[string]float64{
		"formsvc_http_requests_total{code=200,method=GET,route=/healthz}":  1,
		"formsvc_http_requests_total{code=200,method=HEAD,route=/healthz}": 1,
		"formsvc_http_requests_total{code=409,method=POST,route=/healthz}": 1,
		"formsvc_http_requests_total{code=0,method=other,route=/healthz}":  1,
		"formsvc_http_request_seconds{route=/healthz}_count":               4,
		"formsvc_http_in_flight{}":                                         0,
	}
	if got := series(t, registry); len(got) != len(want) {
		t.Errorf("got %v", got)
	} else {
		for name, v := range want {
			if got[name] != v {
				t.Errorf("%s is %v, want %v", name, got[name], v)
			}
		}
	}
}

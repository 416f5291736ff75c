package main

import (
	"context"
	"database/sql"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/certs"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// metrics are the metrics of one server, in their own registry. It is safe for concurrent
// use.
type metrics struct {
	registry *prometheus.Registry
	auto     promauto.Factory
	attempts *prometheus.CounterVec   // by class
	seconds  *prometheus.HistogramVec // by class
	inFlight *prometheus.GaugeVec     // by lane
	blocked  prometheus.Gauge
	failures prometheus.Counter
	requests *requestMetrics
}

func newMetrics() *metrics {
	registry := prometheus.NewRegistry()
	auto := promauto.With(registry)
	registry.MustRegister(collectors.NewBuildInfoCollector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &metrics{
		registry: registry, auto: auto, requests: newRequestMetrics(auto),
		attempts: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "formsvc_webhook_attempts_total", Help: "Delivery attempts, by result.",
		}, []string{"class"}),
		seconds: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "formsvc_webhook_attempt_seconds", Help: "Duration of delivery attempts in seconds, by result.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"class"}),
		inFlight: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "formsvc_webhook_in_flight", Help: "Deliveries in flight on this server, by lane.",
		}, []string{"lane"}),
		blocked: auto.NewGauge(prometheus.GaugeOpts{
			Name: "formsvc_webhook_blocked", Help: "Webhooks whose due deliveries can't be sent, for example because their secret can't be decrypted.",
		}),
		failures: auto.NewCounter(prometheus.CounterOpts{
			Name: "formsvc_webhook_failures_total", Help: "Deliveries that failed permanently, as reported by this server.",
		}),
	}
	for _, lane := range []string{delivery.BulkheadFast, delivery.BulkheadSlow} {
		m.inFlight.WithLabelValues(lane)
	}
	return m
}

// gauge adds a gauge that is read when scraped.
func (m *metrics) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	m.auto.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
}

// watch adds the expiry of the first certificate, if the server has any.
func (m *metrics) watch(source certs.Source) {
	if source == nil {
		return
	}
	m.gauge("formsvc_tls_certificate_expiry_timestamp_seconds", "Unix time when the first certificate of the server expires; 0 while there is none.", nil,
		func() float64 {
			if t := source.Expiry(); !t.IsZero() {
				return float64(t.Unix())
			}
			return 0
		})
}

// pooled is a store with a limited pool of connections: Postgres. SQLite reads never wait, and its writes share one
// connection by design.
type pooled interface{ PoolStats() sql.DBStats }

// watchPool adds the metrics of a connection pool.
func (m *metrics) watchPool(p pooled) {
	const name, help = "formsvc_db_connections", "Open connections to the database, by state."
	m.gauge(name, help, prometheus.Labels{"state": "in_use"}, func() float64 { return float64(p.PoolStats().InUse) })
	m.gauge(name, help, prometheus.Labels{"state": "idle"}, func() float64 { return float64(p.PoolStats().Idle) })
	m.gauge(name+"_max", "Maximum number of open connections to the database.", nil, func() float64 { return float64(p.PoolStats().MaxOpenConnections) })
	m.auto.NewCounterFunc(prometheus.CounterOpts{
		Name: "formsvc_db_wait_seconds_total", Help: "Total time spent waiting for a connection to the database, in seconds.",
	}, func() float64 { return p.PoolStats().WaitDuration.Seconds() })
	m.auto.NewCounterFunc(prometheus.CounterOpts{
		Name: "formsvc_db_waits_total", Help: "Number of waits for a connection to the database.",
	}, func() float64 { return float64(p.PoolStats().WaitCount) })
}

// attempt counts an attempt. The class of a successful one is "".
func (m *metrics) attempt(class string, d time.Duration) {
	if class == "" {
		class = "delivered"
	}
	m.attempts.WithLabelValues(class).Inc()
	m.seconds.WithLabelValues(class).Observe(d.Seconds())
}

// addInFlight changes the number of deliveries in a lane.
func (m *metrics) addInFlight(lane string, delta int) {
	m.inFlight.WithLabelValues(lane).Add(float64(delta))
}

// addBlocked changes the number of webhooks that can't be sent to.
func (m *metrics) addBlocked(delta int) { m.blocked.Add(float64(delta)) }

// serve serves scrapes until ctx ends, and then returns nil.
func (m *metrics) serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return serveUntil(ctx, &http.Server{
		Handler: mux, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout,
		WriteTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}, l)
}

// statsKept is how long the result of a query for queue metrics is kept, and how long one may take, so that scrapes can't
// overload the database.
const statsKept = 5 * time.Second

// watchQueue adds metrics of the backlog, which are queried when scraped. While queries fail, they are not a number.
func (m *metrics) watchQueue(query func(context.Context) (formsvc.QueueStats, error)) {
	failed := m.auto.NewCounter(prometheus.CounterOpts{
		Name: "formsvc_webhook_stats_errors_total", Help: "Failed queries for the size of the queue.",
	})
	var mu sync.Mutex
	var asked time.Time
	var last formsvc.QueueStats
	var lastErr error
	stats := func(value func(formsvc.QueueStats) float64) func() float64 {
		return func() float64 {
			mu.Lock()
			defer mu.Unlock()
			if asked.IsZero() || time.Since(asked) >= statsKept {
				ctx, cancel := context.WithTimeout(context.Background(), statsKept)
				defer cancel()
				asked = time.Now()
				if last, lastErr = query(ctx); lastErr != nil {
					failed.Inc()
				}
			}
			if lastErr != nil {
				return math.NaN()
			}
			return value(last)
		}
	}
	m.gauge("formsvc_webhook_pending", "Pending deliveries of all servers, including those in an attempt; counted up to a million.", nil,
		stats(func(s formsvc.QueueStats) float64 { return float64(s.Pending) }))
	m.gauge("formsvc_webhook_oldest_due_seconds", "Seconds for which the oldest pending delivery has been due; 0 if none is due.", nil,
		stats(func(s formsvc.QueueStats) float64 {
			if s.OldestDue.IsZero() {
				return 0
			}
			return max(0, time.Since(s.OldestDue).Seconds())
		}))
}

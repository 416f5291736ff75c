package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/certs"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// classDelivered is the class of a successful attempt.
const classDelivered = "delivered"

// metrics are the metrics of one server, in their own registry. It implements delivery.Metrics and is safe for concurrent
// use.
type metrics struct {
	registry *prometheus.Registry
	attempts *prometheus.CounterVec   // by class
	seconds  *prometheus.HistogramVec // by class
	inFlight *prometheus.GaugeVec     // by lane
	blocked  prometheus.Gauge
	failures prometheus.Counter
	requests requestMetrics
}

var _ delivery.Metrics = (*metrics)(nil)

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "formsvc_webhook_attempts_total", Help: "Delivery attempts, by result.",
		}, []string{"class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "formsvc_webhook_attempt_seconds", Help: "Duration of delivery attempts in seconds, by result.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"class"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "formsvc_webhook_in_flight", Help: "Deliveries in flight on this server, by lane.",
		}, []string{"lane"}),
		blocked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "formsvc_webhook_blocked", Help: "Webhooks whose due deliveries can't be sent, for example because their secret can't be decrypted.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "formsvc_webhook_failures_total", Help: "Deliveries that failed permanently, as reported by this server.",
		}),
		requests: newRequestMetrics(),
	}
	for _, lane := range []string{delivery.BulkheadFast, delivery.BulkheadSlow} {
		m.inFlight.WithLabelValues(lane)
	}
	m.registry.MustRegister(m.attempts, m.seconds, m.inFlight, m.blocked, m.failures, m.requests.total, m.requests.seconds, m.requests.inFlight,
		collectors.NewBuildInfoCollector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch adds the expiry of the first certificate, if the server has any.
func (m *metrics) watch(source certs.Source) {
	if source == nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "formsvc_tls_certificate_expiry_timestamp_seconds", Help: "Unix time when the first certificate of the server expires; 0 while there is none.",
	}, func() float64 {
		if t := source.Expiry(); !t.IsZero() {
			return float64(t.Unix())
		}
		return 0
	}))
}

// Attempt counts an attempt.
func (m *metrics) Attempt(class string, d time.Duration) {
	if class == "" {
		class = classDelivered
	}
	m.attempts.WithLabelValues(class).Inc()
	m.seconds.WithLabelValues(class).Observe(d.Seconds())
}

// InFlight changes the number of deliveries in a lane.
func (m *metrics) InFlight(lane string, delta int) {
	m.inFlight.WithLabelValues(lane).Add(float64(delta))
}

// Blocked changes the number of webhooks that can't be sent to.
func (m *metrics) Blocked(delta int) { m.blocked.Add(float64(delta)) }

// handler serves scrapes.
func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return mux
}

// serve serves scrapes until ctx ends, and then returns nil.
func (m *metrics) serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: m.handler(), ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout,
		WriteTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	return serveUntil(ctx, server, l)
}

// Limits of queries for queue metrics, so that scrapes can't overload the database.
const (
	statsKept    = 5 * time.Second
	statsTimeout = 5 * time.Second
)

// queueMetrics queries the backlog when scraped. While queries fail, it has no values. It is safe for concurrent use.
type queueMetrics struct {
	stats           func(context.Context) (formsvc.QueueStats, error)
	now             func() time.Time
	pending, oldest *prometheus.Desc
	errors          prometheus.Counter
	mu              sync.Mutex
	asked           time.Time
	last            formsvc.QueueStats
	lastErr         error
}

func newQueueMetrics(stats func(context.Context) (formsvc.QueueStats, error)) *queueMetrics {
	return &queueMetrics{
		stats: stats, now: time.Now,
		pending: prometheus.NewDesc("formsvc_webhook_pending",
			"Pending deliveries of all servers, including those in an attempt; counted up to a million.", nil, nil),
		oldest: prometheus.NewDesc("formsvc_webhook_oldest_due_seconds",
			"Seconds for which the oldest pending delivery has been due; 0 if none is due.", nil, nil),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "formsvc_webhook_stats_errors_total", Help: "Failed queries for the size of the queue.",
		}),
	}
}

// Describe implements prometheus.Collector.
func (q *queueMetrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- q.pending
	descs <- q.oldest
	q.errors.Describe(descs)
}

// Collect implements prometheus.Collector.
func (q *queueMetrics) Collect(out chan<- prometheus.Metric) {
	stats, err := q.ask()
	q.errors.Collect(out)
	if err != nil {
		return
	}
	age := 0.0
	if !stats.OldestDue.IsZero() {
		age = max(0, q.now().Sub(stats.OldestDue).Seconds())
	}
	out <- prometheus.MustNewConstMetric(q.pending, prometheus.GaugeValue, float64(stats.Pending))
	out <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, age)
}

// ask returns the last result of the query, and repeats the query if that is too old.
func (q *queueMetrics) ask() (formsvc.QueueStats, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.asked.IsZero() && q.now().Sub(q.asked) < statsKept {
		return q.last, q.lastErr
	}
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	q.last, q.lastErr = q.stats(ctx)
	if q.lastErr != nil {
		q.errors.Inc()
	}
	q.asked = q.now()
	return q.last, q.lastErr
}

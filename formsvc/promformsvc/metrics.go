package promformsvc

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/internal/recorder"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Options changes what is measured, and how. The zero value is ready for use.
type Options struct {
	// Pool returns the state of a limited pool of connections, as the method PoolStats of a store on Postgres does. Defaults to none.
	Pool func() sql.DBStats
	// Route names the route of a request that was served: one of few texts, or "" for a request without one. Defaults to the path
	// of the request's Pattern, which [http.ServeMux] and httpx.Handler set unless there is a handler between that copies the
	// request, such as [http.StripPrefix].
	Route func(*http.Request) string
}

// Metrics are the metrics of one service. Register them once. It is safe for concurrent use.
type Metrics struct {
	all      []prometheus.Collector
	route    func(*http.Request) string
	attempts *prometheus.CounterVec   // by class
	seconds  *prometheus.HistogramVec // by class
	inFlight *prometheus.GaugeVec     // by lane
	blocked  prometheus.Gauge
	failures prometheus.Counter
	requests *prometheus.CounterVec   // by route, method and code
	times    *prometheus.HistogramVec // by route
	serving  prometheus.Gauge
}

var _ prometheus.Collector = (*Metrics)(nil)

// New returns the metrics of a service.
func New(svc *formsvc.Service, opts *Options) *Metrics {
	o := *cmp.Or(opts, &Options{})
	m := newMetrics()
	if m.route = o.Route; o.Route == nil {
		m.route = pathOf
	}
	m.watchQueue(svc.Deliveries.Stats)
	if o.Pool != nil {
		m.watchPool(o.Pool)
	}
	return m
}

func newMetrics() *Metrics {
	m := &Metrics{
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
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "formsvc_http_requests_total", Help: "Requests to the API and to public forms; code 0 means that no response was sent.",
		}, []string{"route", "method", "code"}),
		times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "formsvc_http_request_seconds", Help: "Duration of requests to the API in seconds.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10},
		}, []string{"route"}),
		serving: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "formsvc_http_in_flight", Help: "Requests to the API in progress on this server, including those that wait for a slot.",
		}),
	}
	m.all = []prometheus.Collector{m.attempts, m.seconds, m.inFlight, m.blocked, m.failures, m.requests, m.times, m.serving}
	for _, lane := range []string{delivery.BulkheadFast, delivery.BulkheadSlow} {
		m.inFlight.WithLabelValues(lane)
	}
	return m
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(to)
	}
}

// Delivery returns functions for an engine that count its attempts. Several engines can share them.
func (m *Metrics) Delivery() delivery.Metrics {
	return delivery.Metrics{
		Attempt: func(class string, d time.Duration) {
			class = cmp.Or(class, "delivered")
			m.attempts.WithLabelValues(class).Inc()
			m.seconds.WithLabelValues(class).Observe(d.Seconds())
		},
		InFlight: func(lane string, delta int) { m.inFlight.WithLabelValues(lane).Add(float64(delta)) },
		Blocked:  func(delta int) { m.blocked.Add(float64(delta)) },
	}
}

// OnFailure counts a delivery that failed permanently. It is for [delivery.Options], alone or called by your function, and
// returns nil.
func (m *Metrics) OnFailure(context.Context, delivery.Failure) error {
	m.failures.Inc()
	return nil
}

// other replaces routes and methods that the service doesn't have, so that clients can't create new series.
const other = "other"

// Handler returns a handler that counts the requests to next, also if next panics to cut off its response.
func (m *Metrics) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		m.serving.Inc()
		recorder.Serve(next, w, r, func(sent *recorder.Writer) {
			m.serving.Dec()
			route, method := cmp.Or(m.route(r), other), r.Method
			known := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
			if !slices.Contains(known, method) {
				method = other
			}
			m.requests.WithLabelValues(route, method, strconv.Itoa(sent.Status)).Inc()
			m.times.WithLabelValues(route).Observe(time.Since(begin).Seconds())
		})
	})
}

// Serve serves a request, and tells ended the status and the bytes of the body, also if next panics to cut off its response: for
// logs. The status is 0 if none was sent.
func Serve(next http.Handler, w http.ResponseWriter, r *http.Request, ended func(status int, bytes int64)) {
	recorder.Serve(next, w, r, func(sent *recorder.Writer) { ended(sent.Status, sent.Bytes) })
}

// pathOf returns the path of a request's pattern, which may have a method and a host before it.
func pathOf(r *http.Request) string {
	return r.Pattern[max(strings.IndexByte(r.Pattern, '/'), 0):]
}

// gauge adds a gauge that is read when scraped.
func (m *Metrics) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	m.all = append(m.all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

// counter adds a counter that is read when scraped.
func (m *Metrics) counter(name, help string, value func() float64) {
	m.all = append(m.all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
}

// watchPool adds the metrics of a connection pool.
func (m *Metrics) watchPool(pool func() sql.DBStats) {
	const name, help = "formsvc_db_connections", "Open connections to the database, by state."
	m.gauge(name, help, prometheus.Labels{"state": "in_use"}, func() float64 { return float64(pool().InUse) })
	m.gauge(name, help, prometheus.Labels{"state": "idle"}, func() float64 { return float64(pool().Idle) })
	m.gauge(name+"_max", "Maximum number of open connections to the database.", nil, func() float64 { return float64(pool().MaxOpenConnections) })
	m.counter("formsvc_db_wait_seconds_total", "Total time spent waiting for a connection to the database, in seconds.",
		func() float64 { return pool().WaitDuration.Seconds() })
	m.counter("formsvc_db_waits_total", "Number of waits for a connection to the database.", func() float64 { return float64(pool().WaitCount) })
}

// statsKept is how long the result of a query for queue metrics is kept, and how long one may take, so that scrapes can't
// overload the database.
const statsKept = 5 * time.Second

// watchQueue adds metrics of the backlog, which are queried when scraped. While queries fail, they are not a number.
func (m *Metrics) watchQueue(query func(context.Context) (formsvc.QueueStats, error)) {
	failed := prometheus.NewCounter(prometheus.CounterOpts{
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
	m.all = append(m.all, failed)
}

package main

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/formsvc/toolkit/httpx"
)

// labelOther replaces routes and methods that the API doesn't have, so that clients can't create new series.
const labelOther = "other"

// routeNames names requests in metrics and logs by the pattern of their route, never by their path, which clients choose
// and which may contain a secret.
type routeNames struct {
	routes  *http.ServeMux // for looking up patterns only
	methods []string
}

// requestMetrics counts the requests of the API.
type requestMetrics struct {
	routeNames

	total    *prometheus.CounterVec   // by route, method and code
	seconds  *prometheus.HistogramVec // by route
	inFlight prometheus.Gauge
}

func newRequestMetrics() requestMetrics {
	return requestMetrics{
		routeNames: newRouteNames(),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "formsvc_http_requests_total", Help: "Requests to the API; code 0 means that no response was sent.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "formsvc_http_request_seconds", Help: "Duration of requests to the API in seconds.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10},
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "formsvc_http_in_flight", Help: "Requests to the API in progress on this server, including those that wait for a slot.",
		}),
	}
}

func newRouteNames() routeNames {
	m := routeNames{routes: http.NewServeMux(), methods: []string{http.MethodHead}}
	m.routes.Handle(settingsPath+"/", http.NotFoundHandler()) // all pages count as one route
	known := make(map[string]bool)
	for _, route := range httpx.Routes() {
		m.methods = append(m.methods, route.Method)
		if !known[route.Pattern] && route.Pattern != "/" { // which would match every path
			m.routes.Handle(route.Pattern, http.NotFoundHandler())
		}
		known[route.Pattern] = true
	}
	return m
}

// method returns the name of a method.
func (m *routeNames) method(name string) string {
	if !slices.Contains(m.methods, name) {
		return labelOther
	}
	return name
}

// route returns the pattern of a request's route.
func (m *routeNames) route(r *http.Request) string {
	if r.URL.Path == "/" {
		return "/"
	}
	if _, pattern := m.routes.Handler(r); pattern != "" {
		return pattern
	}
	return labelOther
}

// count returns a handler that counts requests.
func (m *requestMetrics) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin, counted := time.Now(), &countedWriter{ResponseWriter: w}
		m.inFlight.Inc()
		defer func() { // also when the handler panics to cut off its response
			m.inFlight.Dec()
			route := m.route(r)
			m.total.WithLabelValues(route, m.method(r.Method), strconv.Itoa(counted.status)).Inc()
			m.seconds.WithLabelValues(route).Observe(time.Since(begin).Seconds())
		}()
		next.ServeHTTP(counted, r)
		counted.end()
	})
}

// A countedWriter records the status of a response and the size of its body.
type countedWriter struct {
	http.ResponseWriter

	status int   // 0 until there is one
	bytes  int64 // of the body that were written
}

// end is called when the handler returned.
func (w *countedWriter) end() {
	if w.status == 0 {
		w.status = http.StatusOK // as net/http then does
	}
}

// WriteHeader records the status, unless it is an interim one.
func (w *countedWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body, with status 200 if there was none.
func (w *countedWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

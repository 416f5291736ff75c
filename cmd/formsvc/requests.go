package main

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/formsvc/toolkit/httpx"
)

// reaching are the flags about clients and their requests.
type reaching struct {
	TrustedProxy    []netip.Prefix `placeholder:"CIDR"`
	FormsPerVisitor int            `default:"10" placeholder:"N"`
	LogRequests     bool
}

// clientAddress returns a function that determines the client address of a request.
func (c *reaching) clientAddress() func(*http.Request) string {
	return httpx.TrustedProxies(c.TrustedProxy)
}

// labelOther replaces routes and methods that the API doesn't have, so that clients can't create new series.
const labelOther = "other"

// routeNames names requests in metrics and logs by the pattern of their route, never by their path, which clients choose
// and which may contain a secret.
type routeNames struct {
	routes  *http.ServeMux // for looking up patterns only
	methods []string
}

func newRouteNames() routeNames {
	m := routeNames{routes: http.NewServeMux(), methods: []string{http.MethodHead}}
	for _, path := range []string{consolePath, formsPath} { // all pages count as one route; the path of a form is a secret
		m.routes.Handle(path+"/", http.NotFoundHandler())
	}
	known := map[string]bool{"/": true} // would match every path
	for _, route := range httpx.Routes() {
		m.methods = append(m.methods, route.Method)
		if !known[route.Pattern] {
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

// requestMetrics counts the requests of the API.
type requestMetrics struct {
	total    *prometheus.CounterVec   // by route, method and code
	seconds  *prometheus.HistogramVec // by route
	inFlight prometheus.Gauge
}

func newRequestMetrics(auto promauto.Factory) *requestMetrics {
	return &requestMetrics{
		total: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "formsvc_http_requests_total", Help: "Requests to the API and to public forms; code 0 means that no response was sent.",
		}, []string{"route", "method", "code"}),
		seconds: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "formsvc_http_request_seconds", Help: "Duration of requests to the API in seconds.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10},
		}, []string{"route"}),
		inFlight: auto.NewGauge(prometheus.GaugeOpts{
			Name: "formsvc_http_in_flight", Help: "Requests to the API in progress on this server, including those that wait for a slot.",
		}),
	}
}

// count returns a handler that counts requests.
func (m *requestMetrics) count(next http.Handler) http.Handler {
	return observed(next, func() { m.inFlight.Inc() }, func(w *countedWriter, r *http.Request) {
		m.inFlight.Dec()
		m.total.WithLabelValues(w.route, w.method, strconv.Itoa(w.status)).Inc()
		m.seconds.WithLabelValues(w.route).Observe(time.Since(w.begin).Seconds())
	})
}

// logRequests returns a handler that logs each request when it has ended.
func logRequests(next http.Handler, logger *slog.Logger, clientAddress func(*http.Request) string) http.Handler {
	return observed(next, func() {}, func(w *countedWriter, r *http.Request) {
		logger.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("requestId", w.Header().Get("X-Request-Id")), slog.String("method", w.method),
			slog.String("route", w.route), slog.Int("status", w.status),
			slog.Int64("bytes", w.bytes), slog.Float64("durationMs", float64(time.Since(w.begin).Microseconds())/1e3),
			slog.String("client", clientAddress(r)), slog.String("protocol", r.Proto))
	})
}

// observed returns a handler that calls ended after each request, also when the handler panics to cut off its response.
func observed(next http.Handler, begun func(), ended func(*countedWriter, *http.Request)) http.Handler {
	names := newRouteNames()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun()
		counted := &countedWriter{ResponseWriter: w, begin: time.Now(), route: names.route(r), method: names.method(r.Method)}
		defer func() { ended(counted, r) }()
		next.ServeHTTP(counted, r)
		if counted.status == 0 {
			counted.status = http.StatusOK // as net/http then does
		}
	})
}

// A countedWriter records what happens to a request.
type countedWriter struct {
	http.ResponseWriter

	begin         time.Time
	route, method string
	status        int   // 0 until there is one
	bytes         int64 // of the body that were written
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

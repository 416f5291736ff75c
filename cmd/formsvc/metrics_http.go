package main

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// labelOther replaces routes and methods that the API doesn't have, so that clients can't create new series.
const labelOther = "other"

// routeNames names requests in metrics and logs by the pattern of their route, never by their path, which clients choose
// and which may contain a secret.
type routeNames struct {
	routes  map[string]string // by path with "{}" for each identifier: the route's pattern
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
	m := routeNames{routes: make(map[string]string), methods: []string{http.MethodHead}}
	for _, route := range httpx.Routes() {
		segments := strings.Split(route.Pattern, "/")
		for i, s := range segments {
			if strings.HasPrefix(s, "{") {
				segments[i] = "{}"
			}
		}
		m.routes[strings.Join(segments, "/")] = route.Pattern
		if !slices.Contains(m.methods, route.Method) {
			m.methods = append(m.methods, route.Method)
		}
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

// route returns the pattern of the route at a path. All settings pages count as one route.
func (m *routeNames) route(path string) string {
	if strings.HasPrefix(path, settingsPath+"/") {
		return settingsPath + "/"
	}
	var buf [128]byte
	key := buf[:0]
	for rest := path; rest != ""; {
		if rest[0] != '/' || len(key) > len(buf)/2 {
			return labelOther
		}
		segment := rest[1:]
		if i := strings.IndexByte(segment, '/'); i >= 0 {
			segment = segment[:i]
		}
		rest = rest[1+len(segment):]
		key = append(key, '/')
		if strings.HasPrefix(segment, "{") {
			return labelOther
		}
		if _, ok := formsvc.ParseID(segment); ok {
			segment = "{}"
		}
		key = append(key, segment...)
	}
	if pattern, ok := m.routes[string(key)]; ok {
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
			route := m.route(r.URL.Path)
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

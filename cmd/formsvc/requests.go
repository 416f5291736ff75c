package main

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc/promformsvc"
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

// logRequests returns a handler that logs each request when it has ended.
func logRequests(next http.Handler, logger *slog.Logger, clientAddress func(*http.Request) string) http.Handler {
	names := newRouteNames()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin, route, method := time.Now(), names.route(r), names.method(r.Method)
		promformsvc.Serve(next, w, r, func(status int, bytes int64) {
			logger.LogAttrs(r.Context(), slog.LevelInfo, "request",
				slog.String("requestId", w.Header().Get("X-Request-Id")), slog.String("method", method),
				slog.String("route", route), slog.Int("status", status),
				slog.Int64("bytes", bytes), slog.Float64("durationMs", float64(time.Since(begin).Microseconds())/1e3),
				slog.String("client", clientAddress(r)), slog.String("protocol", r.Proto))
		})
	})
}

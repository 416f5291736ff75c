package main

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/httpx"
)

// reaching are the flags about clients and their requests.
type reaching struct {
	TrustedProxy prefixes `placeholder:"CIDR" help:"Address range of proxies whose X-Forwarded-For header is trusted; repeatable. Any host in it can claim any client address. Defaults to none: the connecting address is the client's."`
	LogRequests  bool     `help:"Log every request: its route, status, size, duration and the client's address, but no path, query or header. Defaults to failures only."`
}

// clientAddress returns a function that determines the client address of a request.
func (c *reaching) clientAddress() func(*http.Request) string {
	return httpx.TrustedProxies(c.TrustedProxy)
}

// logRequests returns a handler that logs each request when it has ended.
func logRequests(next http.Handler, logger *slog.Logger, clientAddress func(*http.Request) string) http.Handler {
	names := newRouteNames()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin, counted := time.Now(), &countedWriter{ResponseWriter: w}
		defer func() { // also when the handler panics to cut its answer off
			logger.LogAttrs(r.Context(), slog.LevelInfo, "request",
				slog.String("requestId", w.Header().Get("X-Request-Id")), slog.String("method", names.method(r.Method)),
				slog.String("route", names.route(r)), slog.Int("status", counted.status),
				slog.Int64("bytes", counted.bytes), slog.Float64("durationMs", float64(time.Since(begin).Microseconds())/1e3),
				slog.String("client", clientAddress(r)), slog.String("protocol", r.Proto))
		}()
		next.ServeHTTP(counted, r)
		counted.end()
	})
}

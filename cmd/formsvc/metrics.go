package main

import (
	"context"
	"database/sql"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/certs"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/promformsvc"
)

// metrics are the metrics of one server, in their own registry. It is safe for concurrent
// use.
type metrics struct {
	*promformsvc.Metrics

	registry *prometheus.Registry
}

// pooled is a store with a limited pool of connections: Postgres. SQLite reads never wait, and its writes share one
// connection by design.
type pooled interface{ PoolStats() sql.DBStats }

// newMetrics returns the metrics of a service on a store, and the expiry of the first certificate if the server has any.
func newMetrics(svc *formsvc.Service, store any, source certs.Source) *metrics {
	names := newRouteNames()
	opts := promformsvc.Options{Route: names.route}
	if p, ok := store.(pooled); ok {
		opts.Pool = p.PoolStats
	}
	m := &metrics{Metrics: promformsvc.New(svc, &opts), registry: prometheus.NewRegistry()}
	m.registry.MustRegister(m, collectors.NewBuildInfoCollector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if source != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "formsvc_tls_certificate_expiry_timestamp_seconds",
			Help: "Unix time when the first certificate of the server expires; 0 while there is none.",
		}, func() float64 {
			if t := source.Expiry(); !t.IsZero() {
				return float64(t.Unix())
			}
			return 0
		}))
	}
	return m
}

// serve serves scrapes until ctx ends, and then returns nil.
func (m *metrics) serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return serveUntil(ctx, &http.Server{
		Handler: mux, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout,
		WriteTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}, l)
}

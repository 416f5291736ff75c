package main

import (
	"database/sql"

	"github.com/prometheus/client_golang/prometheus"
)

// pooled is a store with a limited pool of connections: Postgres. SQLite reads never wait, and its writes share one
// connection by design.
type pooled interface{ PoolStats() sql.DBStats }

// watchPool adds the metrics of a connection pool.
func (m *metrics) watchPool(stats func() sql.DBStats) {
	gauge := func(name, help string, labels prometheus.Labels, value func(sql.DBStats) int) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value(stats())) }))
	}
	counter := func(name, help string, value func(sql.DBStats) float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return value(stats()) }))
	}
	const open = "Open connections to the database, by state."
	gauge("formsvc_db_connections", open, prometheus.Labels{"state": "in_use"}, func(s sql.DBStats) int { return s.InUse })
	gauge("formsvc_db_connections", open, prometheus.Labels{"state": "idle"}, func(s sql.DBStats) int { return s.Idle })
	gauge("formsvc_db_connections_max", "Maximum number of open connections to the database.", nil, func(s sql.DBStats) int { return s.MaxOpenConnections })
	counter("formsvc_db_wait_seconds_total", "Total time spent waiting for a connection to the database, in seconds.",
		func(s sql.DBStats) float64 { return s.WaitDuration.Seconds() })
	counter("formsvc_db_waits_total", "Number of waits for a connection to the database.", func(s sql.DBStats) float64 { return float64(s.WaitCount) })
}

package main

import (
	"database/sql"

	"github.com/prometheus/client_golang/prometheus"
)

// pooled is a store with a limited pool of connections: Postgres. SQLite reads never wait, and its writes share one
// connection by design.
type pooled interface{ PoolStats() sql.DBStats }

// poolMetrics collects metrics of the connection pool. It is safe for concurrent use.
type poolMetrics struct {
	stats                         func() sql.DBStats
	connections, max, wait, waits *prometheus.Desc
}

func newPoolMetrics(stats func() sql.DBStats) *poolMetrics {
	return &poolMetrics{
		stats:       stats,
		connections: prometheus.NewDesc("formsvc_db_connections", "Open connections to the database, by state.", []string{"state"}, nil),
		max:         prometheus.NewDesc("formsvc_db_connections_max", "Maximum number of open connections to the database.", nil, nil),
		wait:        prometheus.NewDesc("formsvc_db_wait_seconds_total", "Total time spent waiting for a connection to the database, in seconds.", nil, nil),
		waits:       prometheus.NewDesc("formsvc_db_waits_total", "Number of waits for a connection to the database.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *poolMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.connections, m.max, m.wait, m.waits} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (m *poolMetrics) Collect(out chan<- prometheus.Metric) {
	s := m.stats()
	out <- prometheus.MustNewConstMetric(m.connections, prometheus.GaugeValue, float64(s.InUse), "in_use")
	out <- prometheus.MustNewConstMetric(m.connections, prometheus.GaugeValue, float64(s.Idle), "idle")
	out <- prometheus.MustNewConstMetric(m.max, prometheus.GaugeValue, float64(s.MaxOpenConnections))
	out <- prometheus.MustNewConstMetric(m.wait, prometheus.CounterValue, s.WaitDuration.Seconds())
	out <- prometheus.MustNewConstMetric(m.waits, prometheus.CounterValue, float64(s.WaitCount))
}

// Package promformsvc has the metrics of a forms service for Prometheus. It isn't linked unless you import it.
//
//	metrics := promformsvc.New(forms, &promformsvc.Options{Pool: store.PoolStats}) // without Pool for SQLite
//	prometheus.MustRegister(metrics)
//	engine, err := delivery.New(store, &delivery.Options{Metrics: metrics.Delivery(), OnFailure: metrics.OnFailure})
//	api, err := httpx.New(forms, nil)
//	mux.Handle("/forms/", metrics.Handler(http.StripPrefix("/forms", api)))
//
// # The metrics
//
//   - Requests, by [Metrics.Handler]: formsvc_http_requests_total by route, method and code, formsvc_http_request_seconds by route,
//     formsvc_http_in_flight.
//   - Deliveries of this process, by [Metrics.Delivery] and [Metrics.OnFailure]: formsvc_webhook_attempts_total and
//     formsvc_webhook_attempt_seconds by class, formsvc_webhook_in_flight by lane, formsvc_webhook_blocked,
//     formsvc_webhook_failures_total.
//   - The queue of all processes, queried at most every five seconds: formsvc_webhook_pending, formsvc_webhook_oldest_due_seconds,
//     formsvc_webhook_stats_errors_total. While queries fail, the first two are not a number.
//   - Connections to the database, by [Options].Pool: formsvc_db_connections by state, formsvc_db_connections_max,
//     formsvc_db_waits_total, formsvc_db_wait_seconds_total.
//
// Labels have few values, and none that clients choose. The dashboard and the alerts in examples/monitoring use these metrics.
package promformsvc

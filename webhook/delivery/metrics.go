package delivery

import "time"

// The bulkheads, for [Metrics].
const (
	BulkheadFast = "fast"
	BulkheadSlow = "slow"
)

// Metrics receives the metrics of an engine. Labels come from small, fixed sets, and gauges change
// by differences, so that several engines can share one Metrics.
//
// Its methods are called concurrently during every request, some with a lock held: they must not
// block, and must not call the engine.
type Metrics interface {
	// Attempt reports that an attempt ended after d. class is "" for a success and one of the Class
	// constants for a failure.
	Attempt(class string, d time.Duration)
	// InFlight changes the number of deliveries in flight in a bulkhead,
	// BulkheadFast or BulkheadSlow. They are counted until their outcome is recorded.
	InFlight(bulkhead string, delta int)
	// Blocked changes the number of endpoints with due deliveries and an [Endpoint.Err].
	Blocked(delta int)
}

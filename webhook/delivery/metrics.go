package delivery

import "time"

// The bulkheads, for [Metrics].
const (
	BulkheadFast = "fast"
	BulkheadSlow = "slow"
)

// Metrics has functions that receive the metrics of an engine; nil ones are left out. Labels come from small, fixed sets, and
// gauges change by differences, so that several engines can share one Metrics.
//
// The functions are called concurrently during every request, some with a lock held: they must not
// block, and must not call the engine.
type Metrics struct {
	// Attempt reports that an attempt ended after d. class is "" for a success and one of the Class
	// constants for a failure.
	Attempt func(class string, d time.Duration)
	// InFlight changes the number of deliveries in flight in a bulkhead,
	// BulkheadFast or BulkheadSlow. They are counted until their outcome is recorded.
	InFlight func(bulkhead string, delta int)
	// Blocked changes the number of endpoints with due deliveries and an [Endpoint.Err].
	Blocked func(delta int)
}

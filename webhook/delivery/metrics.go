package delivery

import "time"

// The bulkheads, for [Metrics].
const (
	BulkheadFast = "fast"
	BulkheadSlow = "slow"
)

// Metrics gets the figures of an engine. Labels come from small, fixed sets, and
// gauges change by differences, so that several engines can share one.
//
// Its methods are called by several goroutines at once, on the way of every
// request and some with a lock held: they must return at once, and must not call
// the engine.
type Metrics interface {
	// Attempt tells that an attempt ended after d: delivered when class is "",
	// otherwise failed with one of the Class constants.
	Attempt(class string, d time.Duration)
	// InFlight changes the number of deliveries in flight in a bulkhead,
	// BulkheadFast or BulkheadSlow. They are counted until their outcome is recorded.
	InFlight(bulkhead string, delta int)
	// Blocked changes the number of endpoints that have deliveries due but
	// cannot be sent to, see [Endpoint.Err].
	Blocked(delta int)
}

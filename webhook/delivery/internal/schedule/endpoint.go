package schedule

import (
	"cmp"
	"slices"
	"time"
)

// A Result is the end of a delivery, as far as it concerns its endpoint.
type Result int

// The results.
const (
	Unsent    Result = iota // not sent, or canceled by a shutdown
	Success                 // accepted
	Rejection               // a response with another status
	Failure                 // no response, or an incomplete one
	Timeout                 // the same, because of the time limit
)

// A Circuit is the state of an endpoint's circuit breaker.
type Circuit int

// The states.
const (
	HalfOpen Circuit = iota // the next delivery is a probe
	Open                    // nothing is sent
	Closed                  // the window applies
)

// endpoint is the state of one endpoint, and what it has in flight.
type endpoint struct {
	window int  // how many requests may be in flight
	closed bool // it accepted something since it last failed without a response
	slow   bool // its last request took long, or timed out

	held         [Bulkheads]int // slots in each bulkhead
	running      int            // requests in flight or being claimed
	slowRequests int            // running requests that take long
	recording    int            // outcomes that are not settled yet
	bytes        int64          // of the payloads in flight and prefetched
	size         int64          // of a payload, estimated from the last ones

	latency    time.Duration // of a success, smoothed; 0 before the first
	prefetched int           // deliveries that are claimed or being claimed, and not started
	target     int           // how many to prefetch; 0 if nothing more is due
	ready      []*Delivery   // prefetched and loaded, in order

	claims    int    // number of its claims
	turn      uint64 // when it last had a turn
	throttled bool   // the last plan had no room for more of it
}

func newEndpoint() endpoint { return endpoint{window: 1} }

// circuit returns the state of the circuit breaker.
func (e *endpoint) circuit() Circuit {
	switch {
	case e.closed:
		return Closed
	case e.running > 0:
		return Open
	default:
		return HalfOpen
	}
}

// observe adjusts window, circuit and speed to the result of a request.
func (e *endpoint) observe(r Result, slow bool, largest int) {
	switch r {
	case Unsent:
		return
	case Success:
		e.window, e.closed = min(e.window+1, largest), true
	case Failure, Timeout:
		e.window, e.closed = 1, false
	case Rejection:
	}
	e.slow = slow || r == Timeout
}

// observeLatency records how long a success took.
func (e *endpoint) observeLatency(took time.Duration) {
	took = max(took, time.Microsecond)
	if e.latency == 0 {
		e.latency = took
		return
	}
	e.latency += (took - e.latency) / 8
}

// observeSize records the size of a payload. A smaller one than before counts little, so that the
// next claim doesn't get many large ones.
func (e *endpoint) observeSize(size int64) {
	e.size = max(size, e.size-(e.size-size)/8)
}

// bulkhead returns the bulkhead of new claims.
func (e *endpoint) bulkhead() Bulkhead {
	if e.slow || e.slowRequests > 0 {
		return Slow
	}
	return Fast
}

// mayStart reports whether circuit and window allow another request, if up to spare outcomes don't
// count.
func (e *endpoint) mayStart(spare int) bool {
	busy := e.running + max(0, e.recording-spare)
	switch e.circuit() {
	case Closed:
		return busy < e.window
	case HalfOpen:
		return busy == 0
	default:
		return false
	}
}

// mayClaim reports whether the endpoint's own limits allow another claim, in addition to the
// planned ones.
func (s *Scheduler) mayClaim(e *endpoint, planned int) bool {
	return e.mayStart(s.spare) && (e.running == 0 || e.bytes+int64(planned+1)*e.size <= s.endpointBytes)
}

// isUnknown reports whether e has the state of an unknown endpoint.
func (e *endpoint) isUnknown() bool { return e.window == 1 && !e.closed && !e.slow }

func (e *endpoint) isIdle() bool { return e.running+e.recording+e.prefetched == 0 }

// peek returns the state of an endpoint. It must not be changed, and is valid until the next call.
func (s *Scheduler) peek(id string) *endpoint {
	if e := s.endpoints[id]; e != nil {
		return e
	}
	s.unknown = newEndpoint()
	return &s.unknown
}

// remember returns the state of an endpoint, to be changed. If there are too many endpoints, it
// evicts others: first unknown ones and those whose last turn is longest ago, and never those with
// something in flight.
func (s *Scheduler) remember(id string) *endpoint {
	if e := s.endpoints[id]; e != nil {
		return e
	}
	if len(s.endpoints) >= s.limit.Remember {
		s.evict()
	}
	e := newEndpoint()
	s.endpoints[id] = &e
	return &e
}

// evict drops a quarter of the endpoints, if that many are idle.
func (s *Scheduler) evict() {
	var idle []string
	for id, e := range s.endpoints {
		if e.isIdle() {
			idle = append(idle, id)
		}
	}
	age := func(id string) uint64 {
		if e := s.endpoints[id]; !e.isUnknown() {
			return e.turn + 1<<63
		}
		return s.endpoints[id].turn
	}
	slices.SortFunc(idle, func(a, b string) int { return cmp.Compare(age(a), age(b)) })
	for _, id := range idle[:min(len(idle), 1+s.limit.Remember/4)] {
		delete(s.endpoints, id)
	}
}

// An account is the state of an account.
type account struct {
	held [Bulkheads]int    // slots in each bulkhead
	turn [Bulkheads]uint64 // when it last had a turn in each
}

// account returns the state of an account, to be changed. If there are too many accounts, it evicts
// those with nothing in flight and no recent turn.
func (s *Scheduler) account(id string) *account {
	if a := s.accounts[id]; a != nil {
		return a
	}
	if len(s.accounts) >= 2*s.limit.Remember {
		for id, a := range s.accounts {
			if a.held == [Bulkheads]int{} && max(a.turn[Fast], a.turn[Slow])+uint64(s.limit.Remember) < s.turn { //nolint:gosec // it is positive
				delete(s.accounts, id)
			}
		}
	}
	a := &account{}
	s.accounts[id] = a
	return a
}

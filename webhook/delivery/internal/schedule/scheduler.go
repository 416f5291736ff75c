package schedule

import "time"

// A Scheduler decides about the deliveries of one run of the engine. It is not
// safe for concurrent use.
type Scheduler struct {
	usage
	limit     Limits
	spare     int // unrecorded outcomes of an endpoint that its window doesn't count
	endpoints map[string]*endpoint
	accounts  map[string]*account
	unknown   endpoint // see peek
	turn      uint64   // counts the turns
	stopped   bool
}

// A Delivery is one claim, until its outcome is settled.
type Delivery struct {
	Job any // for the caller's use

	endpoint   *endpoint
	account    *account
	size       int64
	bulkhead   Bulkhead
	probe      bool // the circuit was not closed at the claim
	slow       bool // the request takes or took long
	ended      bool // the request has ended, and its payload is released
	prefetched bool // prefetched and not started
	refused    bool
}

// Prefetched reports whether the delivery waits for [Scheduler.Loaded] and an
// [Effect] instead of being sent at once.
func (d *Delivery) Prefetched() bool { return d.prefetched }

// Refused reports that there is no room for the payload, so the delivery must end unsent.
func (d *Delivery) Refused() bool { return d.refused }

// An Effect says what the caller must do after a change.
type Effect struct {
	Send   []*Delivery // prefetched deliveries to send now
	Return []*Delivery // prefetched deliveries that must end unsent now
	Wake   bool        // a plan may give more than the last one did
}

// A Share is the room for deliveries of one endpoint. With LateFirst old ones go first, so that new
// ones don't keep them waiting forever.
type Share struct {
	Endpoint  string
	N         int
	LateFirst bool
}

// New returns a scheduler with nothing in flight.
func New(l Limits) *Scheduler {
	return &Scheduler{
		usage: newUsage(l), limit: l, spare: max(0, min(3*l.Window, (l.Fast-l.Window)/2)),
		endpoints: make(map[string]*endpoint), accounts: make(map[string]*account),
	}
}

// Plan distributes the current room and reserves it until EndPlan. No other plan of q may be under
// way.
func (s *Scheduler) Plan(q *Queues) []Share {
	s.short = [pools]int64{}
	for in := range Bulkheads {
		s.planBulkhead(q, in)
	}
	s.planPrefetch(q)
	shares := make([]Share, len(q.planned))
	for i, p := range q.planned {
		e := s.endpoints[p.id]
		e.claims++
		shares[i] = Share{Endpoint: p.id, N: p.planned + p.prefetch, LateFirst: e.claims%4 == 0}
	}
	return shares
}

// Claimed returns the delivery of a claim from a plan. A claim beyond the plan is accepted despite
// the limits: it must be settled in any case.
func (s *Scheduler) Claimed(q *Queues, endpoint string, size int64) *Delivery {
	size = max(0, size)
	p := q.endpoints[endpoint]
	if p != nil && p.planned == 0 && p.prefetch > 0 {
		return s.prefetch(p, size)
	}
	if p == nil || p.planned == 0 {
		p = &endpointQueue{position: position{id: endpoint}, probe: true}
		s.reserve(p)
	}
	p.planned--
	d := &Delivery{endpoint: s.endpoints[endpoint], account: s.account(p.account), size: size, bulkhead: p.bulkhead, probe: p.probe}
	d.endpoint.bytes += size
	d.endpoint.observeSize(size)
	s.add(d.bulkhead, d.probe, 0, size-largestPayload)
	s.count(d, 1)
	return d
}

// Loaded reports that a prefetched delivery can be sent. Deliveries of one endpoint are sent in the
// order of these calls.
func (s *Scheduler) Loaded(d *Delivery) Effect {
	d.endpoint.ready = append(d.endpoint.ready, d)
	return s.advance(d.endpoint)
}

// Slow reports that the request of d takes long.
func (s *Scheduler) Slow(d *Delivery) Effect {
	if d.ended {
		return Effect{}
	}
	d.slow = true
	d.endpoint.slowRequests++
	if d.bulkhead == Fast {
		s.move(d)
	}
	return s.advance(d.endpoint)
}

// End reports that the request of d has ended after took, or was not made.
func (s *Scheduler) End(d *Delivery, r Result, took time.Duration) Effect {
	e := d.endpoint
	d.ended = true
	e.bytes -= d.size
	if d.prefetched {
		s.used[allBytes] -= d.size
		return s.advance(e)
	}
	s.add(d.bulkhead, d.probe, 0, -d.size)
	e.running--
	e.recording++
	if d.slow {
		e.slowRequests--
	}
	e.observe(r, d.slow, s.limit.Window)
	if r == Success {
		e.observeLatency(took)
	}
	return s.advance(e)
}

// Settle reports that the outcome of d was recorded or dropped.
func (s *Scheduler) Settle(d *Delivery) Effect {
	if d.prefetched {
		s.used[prefetchSlots]--
		d.endpoint.prefetched--
	} else {
		s.count(d, -1)
		s.add(d.bulkhead, d.probe, -1, 0)
		s.moveWaiting()
		d.endpoint.recording--
	}
	return s.advance(d.endpoint)
}

// Stop ends prefetching: its Effect returns the deliveries that must end unsent, and later Effects
// return those that would have waited.
func (s *Scheduler) Stop() Effect {
	s.stopped = true
	var f Effect
	for _, e := range s.endpoints {
		f.Return = append(f.Return, e.dropReady()...)
	}
	return f
}

// canPlan reports whether a plan could give more now than the last one: to the endpoint, or because
// there is room that was short.
func (s *Scheduler) canPlan(e *endpoint) bool {
	if e.isLow() && e.mayPrefetch() {
		e.target = 0
		return true
	}
	if e.throttled && e.prefetched == 0 && s.mayClaim(e, 0) {
		// A different pool may be short now, in the other bulkhead.
		in := e.bulkhead()
		if s.hasRoom(in, !e.closed, e.held[in]) {
			e.throttled = false
			return true
		}
	}
	return s.hasFreed()
}

// Remaining reports whether endpoints may have more due than was claimed, and whether one of them
// will probably have room soon.
func (s *Scheduler) Remaining(q *Queues) (some, soon bool) {
	for id, p := range q.endpoints {
		if p.drained {
			continue
		}
		some = true
		if e := s.peek(id); e.closed && e.bulkhead() == Fast {
			return true, true
		}
	}
	return some, false
}

// IsFull reports whether nothing can be claimed for a closed circuit in the fast
// bulkhead. Then an Effect wakes when that changes.
func (s *Scheduler) IsFull() bool { return !s.hasRoom(Fast, false, 0) }

// IsIdle reports whether nothing is in flight.
func (s *Scheduler) IsIdle() bool {
	return s.used[fastSlots]+s.used[slowSlots]+s.used[prefetchSlots] == 0
}

// InFlight returns how many claimed deliveries each bulkhead has.
func (s *Scheduler) InFlight() [Bulkheads]int { return s.inFlight }

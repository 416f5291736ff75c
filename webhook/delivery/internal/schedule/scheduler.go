package schedule

import "time"

// A Scheduler decides about the deliveries of one run of the engine. It is not
// safe for concurrent use.
type Scheduler struct {
	usage
	limit     Limits
	spare     int // outcomes of an endpoint being recorded that its window does not count
	endpoints map[string]*endpoint
	accounts  map[string]*account
	unknown   endpoint // see peek
	turn      uint64   // counts the turns
	stopped   bool
}

// A Delivery is one claim, until its outcome is settled.
type Delivery struct {
	Job any // the caller's own

	endpoint   *endpoint
	account    *account
	size       int64
	bulkhead   Bulkhead
	probe      bool // the circuit was not closed when it was claimed
	slow       bool // the request takes, or took, long
	ended      bool // the request has ended, and its payload is gone
	prefetched bool // and not started
	refused    bool
}

// Prefetched reports whether the delivery waits for [Scheduler.Loaded] and an
// [Effect] instead of being sent at once.
func (d *Delivery) Prefetched() bool { return d.prefetched }

// Refused reports whether there is no room for the payload, so that the delivery
// has to end unsent.
func (d *Delivery) Refused() bool { return d.refused }

// An Effect is what follows from a change.
type Effect struct {
	Send   []*Delivery // prefetched, and to be sent now
	Return []*Delivery // prefetched, and to end unsent now
	Wake   bool        // a plan may give more than the last one did
}

// A Share is room for deliveries of one endpoint. LateFirst says that old ones go
// first, so that new ones do not keep them waiting for ever.
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

// Plan shares out the room that there is now, and reserves it until
// EndPlan. No plan of q may be under way.
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

// Claimed returns the delivery of a claim that a plan got. A claim that was not
// asked for is taken beyond the limits: it has to be settled in any case.
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

// Loaded tells that a prefetched delivery can be sent. Those of one endpoint are
// sent in the order of the calls.
func (s *Scheduler) Loaded(d *Delivery) Effect {
	d.endpoint.ready = append(d.endpoint.ready, d)
	return s.advance(d.endpoint)
}

// Slow tells that the request of d takes long.
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

// End tells that the request of d has ended after that time, or was not made.
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

// Settle tells that the outcome of d is recorded or given up.
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

// Stop ends prefetching: it returns what has to end unsent, and from now on an
// Effect returns what would have waited.
func (s *Scheduler) Stop() Effect {
	s.stopped = true
	var f Effect
	for _, e := range s.endpoints {
		f.Return = append(f.Return, e.dropReady()...)
	}
	return f
}

// canPlan reports whether a plan could give more now than the last one did: to the
// endpoint, or because there is room that was short.
func (s *Scheduler) canPlan(e *endpoint) bool {
	if e.isLow() && e.mayPrefetch() {
		e.target = 0
		return true
	}
	if e.throttled && e.prefetched == 0 && s.mayClaim(e, 0) {
		// What is short may be another thing than before, in the other bulkhead.
		in := e.bulkhead()
		if s.hasRoom(in, !e.closed, e.held[in]) {
			e.throttled = false
			return true
		}
	}
	return s.hasFreed()
}

// Remaining reports whether endpoints may have more due than was claimed, and
// whether one of them will probably have room for it in a moment.
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

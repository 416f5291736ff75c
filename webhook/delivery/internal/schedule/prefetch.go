package schedule

import "time"

// prefetchTime is how much is prefetched: what an endpoint takes that long for, as
// it has responded lately. So nobody else could have sent it much earlier, and
// what changes about the endpoint meanwhile counts soon.
const prefetchTime = 50 * time.Millisecond

// mayPrefetch reports whether the endpoint may have prefetched deliveries.
func (e *endpoint) mayPrefetch() bool { return e.closed && e.latency > 0 && e.bulkhead() == Fast }

// isLow reports whether it is time to prefetch again: half of it is gone. Claims
// for each request that ends would cost more than the requests.
func (e *endpoint) isLow() bool { return e.target > 0 && e.prefetched <= e.target/2 }

// planPrefetch reserves what is to be prefetched, in equal parts for all that have
// more due.
func (s *Scheduler) planPrefetch(q *Queues) {
	if s.short[fastSlots]+s.short[allBytes] > 0 {
		return
	}
	var eligible []*endpointQueue
	for _, a := range q.accounts {
		for _, p := range a.endpoints {
			if !p.drained && s.peek(p.id).mayPrefetch() {
				eligible = append(eligible, p)
			}
		}
	}
	for _, p := range eligible {
		e := s.endpoints[p.id]
		e.target = int(min(s.limits[prefetchSlots]/int64(len(eligible)), int64(e.window)*int64(prefetchTime)/int64(e.latency)))
		if !e.isLow() {
			continue
		}
		n := int(min(int64(e.target-e.prefetched), s.free(prefetchSlots), s.payloads(e, p.planned)))
		if n <= 0 {
			e.target = 0
			continue
		}
		if p.planned == 0 {
			q.planned = append(q.planned, p)
		}
		p.prefetch = n
		e.prefetched += n
		s.used[prefetchSlots] += int64(n)
	}
}

// payloads returns how many payloads like the last ones of the endpoint may be
// prefetched beside those that are planned.
func (s *Scheduler) payloads(e *endpoint, planned int) int64 {
	size := e.size
	if size == 0 {
		size = largestPayload
	}
	return min(s.endpointBytes-e.bytes-int64(planned)*size, s.limits[allBytes]/2-s.used[allBytes]) / size
}

// prefetch returns the delivery of a claim that was planned as prefetched. If the
// payload is too large to wait, the delivery has to go back.
func (s *Scheduler) prefetch(q *endpointQueue, size int64) *Delivery {
	q.prefetch--
	e := s.endpoints[q.id]
	e.observeSize(size)
	d := &Delivery{endpoint: e, account: s.account(q.account), size: size, prefetched: true}
	if e.bytes+size > s.endpointBytes || s.used[allBytes]+size > s.limits[allBytes] {
		d.refused, d.size = true, 0
	}
	e.bytes += d.size
	s.used[allBytes] += d.size
	return d
}

// advance starts what was prefetched for an endpoint, as far as there is room, and
// returns it to the queue once the endpoint may have none, or has nothing else to
// wait for.
func (s *Scheduler) advance(e *endpoint) Effect {
	var f Effect
	if s.stopped || !e.mayPrefetch() {
		f.Return = e.dropReady()
	}
	for len(e.ready) > 0 && e.mayStart(s.spare) && s.free(fastSlots) > int64(e.held[Fast]) {
		d := e.ready[0]
		e.ready = e.ready[1:]
		s.start(d)
		f.Send = append(f.Send, d)
	}
	if e.running == 0 && e.recording == 0 {
		f.Return = append(f.Return, e.dropReady()...)
	}
	f.Wake = s.canPlan(e)
	return f
}

// start gives a slot of the fast bulkhead to a prefetched delivery.
func (s *Scheduler) start(d *Delivery) {
	d.prefetched = false
	d.endpoint.prefetched--
	s.used[prefetchSlots]--
	d.endpoint.running++
	s.add(Fast, false, 1, 0)
	s.count(d, 1)
}

// dropReady returns what is ready and forgets it.
func (e *endpoint) dropReady() []*Delivery {
	ready := e.ready
	e.ready = nil
	return ready
}

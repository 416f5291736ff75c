package schedule

import "time"

// prefetchTime limits how much is prefetched: what an endpoint handles in that time, by its recent
// latency. So no other process could have sent it much earlier, and changes of the endpoint take
// effect soon.
const prefetchTime = 50 * time.Millisecond

// mayPrefetch reports whether the endpoint may have prefetched deliveries.
func (e *endpoint) mayPrefetch() bool { return e.closed && e.latency > 0 && e.bulkhead() == Fast }

// isLow reports whether it is time to prefetch again: when half is used up. A claim for each ended
// request would cost more than the requests.
func (e *endpoint) isLow() bool { return e.target > 0 && e.prefetched <= e.target/2 }

// planPrefetch reserves deliveries to prefetch, in equal parts for all endpoints that have more
// due.
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

// payloads returns how many payloads of the endpoint's usual size may be prefetched in addition to
// the planned ones.
func (s *Scheduler) payloads(e *endpoint, planned int) int64 {
	size := e.size
	if size == 0 {
		size = largestPayload
	}
	return min(s.endpointBytes-e.bytes-int64(planned)*size, s.limits[allBytes]/2-s.used[allBytes]) / size
}

// prefetch returns the delivery of a claim that was planned as prefetched. If the payload is too
// large to wait, the delivery must be returned.
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

// advance starts prefetched deliveries of an endpoint as far as there is room. It returns them to
// the queue if the endpoint may no longer prefetch, or has nothing in flight to wait for.
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

// dropReady removes and returns the ready deliveries.
func (e *endpoint) dropReady() []*Delivery {
	ready := e.ready
	e.ready = nil
	return ready
}

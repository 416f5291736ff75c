package delivery

import (
	"context"
	"runtime"
	"sync"
)

// slots is the traffic of a run for several goroutines. It wakes the claim loop
// when there is room that the last plan lacked.
type slots struct {
	metrics  Metrics // or nil
	wakeIdle bool    // also wake when the last delivery leaves

	mu   sync.Mutex
	t    *traffic
	news bool   // there is room that the last plan lacked
	wake func() // ends await; nil when nobody waits
}

// do changes the traffic. change reports whether to wake the claim loop.
func (s *slots) do(change func(t *traffic) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.t.inFlight
	if change(s.t) || s.wakeIdle && s.t.isIdle() {
		s.signal()
	}
	if s.metrics == nil {
		return
	}
	for in, name := range [...]string{fast: LaneFast, slow: LaneSlow} {
		if delta := s.t.inFlight[in] - before[in]; delta != 0 {
			s.metrics.InFlight(name, delta)
		}
	}
}

// plan shares out and reserves what room there is. Room that comes later is
// news.
func (s *slots) plan(a *agenda) []Share {
	s.mu.Lock()
	defer s.mu.Unlock()
	shares := s.t.plan(a)
	// The last delivery may have left before.
	s.news = s.wakeIdle && s.t.isIdle()
	return shares
}

// take gives slots to the claims that a plan got.
func (s *slots) take(a *agenda, shares []Share, claims []Claim) (taken []*slot) {
	s.do(func(t *traffic) bool {
		taken = t.take(a, shares, claims)
		return false
	})
	return taken
}

// cancel gives back what was reserved for a plan that came to nothing.
func (s *slots) cancel(a *agenda, shares []Share) {
	s.do(func(t *traffic) bool {
		for _, share := range shares {
			t.cancel(a.items[share.Endpoint])
		}
		return false
	})
}

// late tells that a request is in flight for longer than SlowAfter. Like all that
// happens to a request it returns what follows for those claimed ahead.
func (s *slots) late(j *job) (begun, back []*slot) {
	return s.next(j, func(t *traffic) bool { return t.late(j.slot) })
}

// end tells that a request has ended, or was not made.
func (s *slots) end(j *job, v verdict) (begun, back []*slot) {
	return s.next(j, func(t *traffic) bool { return t.end(j.slot, v) })
}

// leave tells that an outcome is settled.
func (s *slots) leave(j *job) (begun, back []*slot) {
	return s.next(j, func(t *traffic) bool { return t.leave(j.slot) })
}

// line puts jobs of one endpoint that were claimed ahead in line.
func (s *slots) line(jobs []*job) (begun, back []*slot) {
	return s.next(jobs[0], func(t *traffic) bool {
		t.wait(jobs)
		return false
	})
}

// next changes the traffic and goes on with the endpoint of j.
func (s *slots) next(j *job, change func(t *traffic) bool) (begun, back []*slot) {
	s.do(func(t *traffic) bool {
		news := change(t)
		begun, back = t.next(j.slot.endpoint)
		return len(begun) > 0 && t.isFed(j.slot.endpoint) || news
	})
	return begun, back
}

// close ends claiming ahead and returns what has to go back.
func (s *slots) close() (back []*slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t.close()
}

// isIdle reports whether nothing is in flight.
func (s *slots) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t.isIdle()
}

// nudge wakes the claim loop for another reason than room.
func (s *slots) nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signal()
}

func (s *slots) signal() {
	s.news = true
	if s.wake != nil {
		s.wake()
	}
}

// more tells what the plans of a have left over, see traffic.more.
func (s *slots) more(a *agenda) (some, soon bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.t.more(a)
}

// await calls wait with a context that ends when there is news since the last
// plan, or does not call it if there is already. full tells that a healthy
// endpoint could get nothing. It is for one goroutine at a time.
func (s *slots) await(ctx context.Context, wait func(ctx context.Context, full bool) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.news {
		s.mu.Unlock()
		return nil
	}
	s.wake = cancel
	full := s.t.full()
	s.mu.Unlock()

	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wake = nil
	}()
	err := wait(ctx, full)
	// What ends at the same moment shares the next claim.
	runtime.Gosched()
	return err
}

package delivery

import (
	"context"
	"sync"
)

// slots counts what is in flight, in all and by endpoint, and wakes the claim
// loop when there is room that the last claim may have lacked.
//
// A job holds one slot from its claim until its outcome is settled. It makes its
// endpoint busy only while its request runs: the next request may start while
// the outcome is recorded. Of such outcomes only so many are free for each
// endpoint, or one endpoint could fill all slots with outcomes that the queue
// does not take.
type slots struct {
	total       int
	perEndpoint int
	wakeIdle    bool // also wake when the last slot is freed

	mu        sync.Mutex
	used      int
	endpoints map[string]load
	news      bool   // there is room that was not there at the last snapshot
	wake      func() // ends await; nil when nobody waits
}

// A load is what one endpoint has in flight.
type load struct{ running, recording int }

// A room is what was free at one moment.
type room struct {
	free int
	idle bool           // nothing at all was in flight
	busy map[string]int // no value above PerEndpoint
}

func (s *slots) room() room {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = false
	r := room{free: s.total - s.used, idle: s.used == 0, busy: make(map[string]int, len(s.endpoints))}
	for endpoint, l := range s.endpoints {
		if n := s.busy(l); n > 0 {
			r.busy[endpoint] = n
		}
	}
	return r
}

// busy returns how much of PerEndpoint is taken.
func (s *slots) busy(l load) int {
	free := max(0, min(s.perEndpoint, (s.total-s.perEndpoint)/2))
	return min(l.running+max(0, l.recording-free), s.perEndpoint)
}

// take gives j a slot.
func (s *slots) take(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
	s.change(j, load{running: 1})
}

// filled wakes the claim loop when an endpoint got all the room that it had at
// the snapshot r, and has room again by now: requests that ended in between did
// not find it full, and so did not wake the loop.
func (s *slots) filled(r room, claims []Claim) {
	got := make(map[string]int)
	for i := range claims {
		got[claims[i].Endpoint.ID]++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range got {
		if n >= s.perEndpoint-r.busy[id] && s.busy(s.endpoints[id]) < s.perEndpoint {
			s.signal()
			return
		}
	}
}

// sent tells that the request of j has ended.
func (s *slots) sent(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.sent = true
	s.change(j, load{running: -1, recording: 1})
}

// release takes the slot of j back.
func (s *slots) release(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == s.total {
		s.signal()
	}
	s.used--
	if s.used == 0 && s.wakeIdle {
		s.signal()
	}
	if j.sent {
		s.change(j, load{recording: -1})
	} else {
		s.change(j, load{running: -1})
	}
}

func (s *slots) change(j *job, by load) {
	endpoint := j.claim.Endpoint.ID
	old := s.endpoints[endpoint]
	l := load{old.running + by.running, old.recording + by.recording}
	if l == (load{}) {
		delete(s.endpoints, endpoint)
	} else {
		s.endpoints[endpoint] = l
	}
	if before := s.busy(old); before == s.perEndpoint && s.busy(l) < before {
		s.signal()
	}
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

// await calls wait with a context that ends when there is news since the last
// snapshot, or does not call it if there is already. full tells whether every
// slot was taken. It is for one goroutine at a time.
func (s *slots) await(ctx context.Context, wait func(ctx context.Context, full bool) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.news {
		s.mu.Unlock()
		return nil
	}
	s.wake = cancel
	full := s.used >= s.total
	s.mu.Unlock()

	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wake = nil
	}()
	return wait(ctx, full)
}

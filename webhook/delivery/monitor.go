package delivery

import (
	"context"
	"runtime"
	"sync"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// A monitor is the scheduler of a run for several goroutines. It wakes the claim
// loop when another plan may give more than the last one.
type monitor struct {
	metrics  Metrics
	wakeIdle bool // also wake when nothing is in flight anymore

	mu    sync.Mutex
	s     *schedule.Scheduler
	woken bool   // since the last plan
	wake  func() // ends await; nil if nothing waits
}

// do changes the schedule.
func (m *monitor) do(change func(s *schedule.Scheduler) schedule.Effect) schedule.Effect {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.s.InFlight()
	effect := change(m.s)
	if effect.Wake || m.wakeIdle && m.s.IsIdle() {
		m.signal()
	}
	if m.metrics.InFlight != nil {
		now := m.s.InFlight()
		for b, name := range [...]string{schedule.Fast: BulkheadFast, schedule.Slow: BulkheadSlow} {
			if delta := now[b] - before[b]; delta != 0 {
				m.metrics.InFlight(name, delta)
			}
		}
	}
	return effect
}

// plan reserves the available room. Room that becomes free later wakes.
func (m *monitor) plan(q *schedule.Queues) []Share {
	m.mu.Lock()
	defer m.mu.Unlock()
	planned := m.s.Plan(q)
	// The last delivery may have ended before.
	m.woken = m.wakeIdle && m.s.IsIdle()
	shares := make([]Share, len(planned))
	for i, share := range planned {
		shares[i] = Share(share)
	}
	return shares
}

// read calls f with the scheduler.
func (m *monitor) read(f func(s *schedule.Scheduler)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.s)
}

func (m *monitor) signal() {
	m.woken = true
	if m.wake != nil {
		m.wake()
	}
}

// await calls wait with a context that ends when the monitor wakes. If the monitor woke since the
// last plan, it doesn't call wait. full says that a healthy endpoint got no room. One goroutine at
// a time may call it.
func (m *monitor) await(ctx context.Context, wait func(ctx context.Context, full bool) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.mu.Lock()
	if m.woken {
		m.mu.Unlock()
		return nil
	}
	m.wake = cancel
	full := m.s.IsFull()
	m.mu.Unlock()

	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.wake = nil
	}()
	err := wait(ctx, full)
	// Requests that end at the same moment share the next claim.
	runtime.Gosched()
	return err
}

package schedule

import (
	"fmt"
	"testing"
)

// ids returns n identifiers of endpoints, each of a different account.
func ids(prefix string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("%s%c%c%c", prefix, 'a'+i/676%26, 'a'+i/26%26, 'a'+i%26))
	}
	return list
}

// total returns how many slots there are.
func total(got map[string][]*Delivery) (n int) {
	for _, slots := range got {
		n += len(slots)
	}
	return n
}

// each calls f for each slot.
func each(got map[string][]*Delivery, f func(s *Delivery)) {
	for _, slots := range got {
		for _, s := range slots {
			f(s)
		}
	}
}

// Probes have half of the slow bulkhead, and claims leave a quarter of it to requests that become
// slow.
func TestSlowBulkheadIsShared(t *testing.T) {
	t.Parallel()
	tr := newTestScheduler(testLimits{Concurrency: 4, SlowConcurrency: 16, PerEndpoint: 4})
	dead, slow := ids("d", 50), ids("s", 5)
	for _, id := range dead {
		tr.remember(id).observe(Timeout, true, 4)
	}
	if got := total(tr.fill(queues(dead...), 1)); got != 8 {
		t.Errorf("%d of dead endpoints, want 8", got)
	}
	tr.closeCircuits(4, slow...)
	for _, id := range slow {
		tr.remember(id).observe(Success, true, 4)
	}
	if got := total(tr.fill(queues(slow...), 1)); got != 4 {
		t.Errorf("%d of slow ones beside them, want 4", got)
	}
	closed := ids("p", 4)
	tr.closeCircuits(4, closed...)
	each(tr.fill(queues(closed...), 1), func(s *Delivery) { tr.Slow(s) })
	if tr.inFlight != [Bulkheads]int{0, 16} {
		t.Errorf("in flight %v: those that hang now found no room", tr.inFlight)
	}
}

// An endpoint with large payloads has fewer of them in flight.
func TestBytesOfOneEndpoint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ size, want int }{{800, 8}, {500_000, 4}, {1_000_000, 2}, {20_000_000, 1}} {
		tr := newTestScheduler(testLimits{Concurrency: 64, PerEndpoint: 8}) // a 32nd of 64 MiB
		tr.closeCircuits(8, "a1")
		a := queues("a1")
		// At first the size of its payloads is unknown.
		each(tr.fill(a, tt.size), func(s *Delivery) { tr.End(s, Rejection, 0); tr.Settle(s) })
		if got := total(tr.fill(a, tt.size)); got != tt.want {
			t.Errorf("%d payloads of %d bytes, want %d", got, tt.size, tt.want)
		}
	}
}

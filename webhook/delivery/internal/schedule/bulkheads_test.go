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

func TestProbesGetHalf(t *testing.T) {
	t.Parallel()
	for concurrency, want := range map[int]int{1: 1, 2: 1, 9: 4, 64: 32} {
		tr := newTestScheduler(testLimits{Concurrency: concurrency})
		unknown := ids("u", 100)
		if got := total(tr.fill(queues(unknown...), 1)); got != want {
			t.Errorf("Concurrency %d: %d for unknown endpoints, want %d", concurrency, got, want)
		}
		closed := ids("p", 100)
		tr.closeCircuits(8, closed...)
		got := total(tr.fill(queues(append(unknown, closed...)...), 1))
		if want := concurrency - want; got != want {
			t.Errorf("Concurrency %d: %d for closed ones beside them, want %d", concurrency, got, want)
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

func TestBytesLimitClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		maxBytes  int64
		sizes     []int // of the payloads in flight of a closed endpoint
		closed    int
		slow, new int
	}{
		{"nothing in flight", 10_000_000, nil, 10, 5, 5},
		{"small payloads", 10_000_000, []int{800, 800}, 9, 5, 5},
		{"large payloads", 10_000_000, []int{1_000_000, 1_000_000, 1_000_000}, 7, 5, 5},
		{"less than one fits", 10_000_000, []int{9_000_001}, 0, 0, 0},
		{"one fits", 10_000_000, []int{9_000_000}, 1, 1, 1},
		{"one is always allowed", 100, nil, 1, 1, 1},
		{"but not two", 100, []int{1}, 0, 0, 0},
	} {
		kinds := map[string]int{"closed": tt.closed, "slow": tt.slow, "unknown": tt.new}
		for kind, want := range kinds {
			tr := newTestScheduler(testLimits{Concurrency: 64, PerEndpoint: 1, MaxBytes: tt.maxBytes})
			for i, size := range tt.sizes {
				id := fmt.Sprint("held", i)
				tr.closeCircuits(1, id)
				a := queues(id)
				tr.Plan(a)
				tr.Claimed(a, id, int64(size))
				tr.EndPlan(a, true)
			}
			list := ids("x", 100)
			for _, id := range list {
				if kind != "unknown" {
					tr.closeCircuits(1, id)
				}
				tr.remember(id).slow = kind == "slow"
			}
			if got := len(tr.Plan(queues(list...))); got != want {
				t.Errorf("%s: %d for %s endpoints, want %d", tt.name, got, kind, want)
			}
		}
	}
}

// Large payloads of slow and unknown endpoints leave half of the memory to the others, even after
// they became slow.
func TestHalfOfTheBytesIsForFastEndpoints(t *testing.T) {
	t.Parallel()
	tr := newTestScheduler(testLimits{MaxBytes: 20_000_000})
	held := tr.fill(queues(ids("u", 100)...), 1_000_000)
	if total(held) != 10 {
		t.Fatalf("%d unknown", total(held))
	}
	tr.closeCircuits(1, ids("p", 5)...)
	late := tr.fill(queues(ids("p", 5)...), 1_000_000)
	each(late, func(s *Delivery) { tr.Slow(s) })
	each(held, func(s *Delivery) { tr.End(s, Failure, 0) })
	// 5 MB of 10 are left for fast endpoints.
	if got := total(tr.fill(queues(ids("v", 100)...), 1_000_000)); got != 5 {
		t.Errorf("%d unknown beside 5 late ones", got)
	}
	tr.closeCircuits(1, ids("q", 100)...)
	if got := total(tr.fill(queues(ids("q", 100)...), 1_000_000)); got != 10 {
		t.Errorf("%d healthy ones beside them, want 10", got)
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

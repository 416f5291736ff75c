package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// testLimits are the limits of a test scheduler; 0 means the engine's default.
type testLimits struct {
	Concurrency, SlowConcurrency, PerEndpoint int
	MaxBytes                                  int64
}

func newTestScheduler(l testLimits) *Scheduler {
	fast := cmp.Or(l.Concurrency, 512)
	return New(Limits{
		Fast: fast, Slow: cmp.Or(l.SlowConcurrency, 4*fast), Window: cmp.Or(l.PerEndpoint, max(1, min(64, fast/2))),
		Bytes: cmp.Or(l.MaxBytes, 64<<20), Remember: 10_000,
	})
}

// queues returns queues of these endpoints. The account of an endpoint is the part before the first
// digit.
func queues(ids ...string) *Queues {
	q := NewQueues(len(ids))
	for _, id := range ids {
		q.Add(id, strings.TrimRight(id, "0123456789"))
	}
	return q
}

// closeCircuits closes the circuits of endpoints, with windows of that size.
func (s *Scheduler) closeCircuits(window int, ids ...string) {
	for _, id := range ids {
		e := s.remember(id)
		e.window, e.closed = window, true
	}
}

// fill claims everything in a plan, with payloads of that size, and returns the deliveries by
// endpoint.
func (s *Scheduler) fill(q *Queues, size int) map[string][]*Delivery {
	got := make(map[string][]*Delivery)
	for _, share := range s.Plan(q) {
		for range share.N {
			got[share.Endpoint] = append(got[share.Endpoint], s.Claimed(q, share.Endpoint, int64(size)))
		}
	}
	s.EndPlan(q, true)
	return got
}

// counts returns how many slots each endpoint got.
func counts(got map[string][]*Delivery) string {
	parts := make([]string, 0, len(got))
	for _, id := range slices.Sorted(maps.Keys(got)) {
		parts = append(parts, fmt.Sprintf("%s:%d", id, len(got[id])))
	}
	return strings.Join(parts, " ")
}

func TestSharesAreFair(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		fast    int
		windows map[string]int
		want    string
	}{
		{"one endpoint", 16, map[string]int{"a1": 8}, "a1:8"},
		{"its window", 16, map[string]int{"a1": 3}, "a1:3"},
		{"accounts before endpoints", 16, map[string]int{"a1": 8, "a2": 8, "a3": 8, "b1": 8}, "a1:3 a2:3 a3:3 b1:5"},
		{"endpoints of an account", 20, map[string]int{"a1": 8, "a2": 8, "b1": 8}, "a1:5 a2:4 b1:7"},
		{"what one cannot use goes to others", 20, map[string]int{"a1": 1, "b1": 2, "c1": 8}, "a1:1 b1:2 c1:8"},
		{"more accounts than room", 2, map[string]int{"a1": 8, "b1": 8, "c1": 8}, "a1:1 b1:1"},
		{"nobody has more than is left", 8, map[string]int{"a1": 8}, "a1:4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := newTestScheduler(testLimits{Concurrency: tt.fast, PerEndpoint: 8})
			for id, window := range tt.windows {
				tr.closeCircuits(window, id)
			}
			got := tr.fill(queues(slices.Sorted(maps.Keys(tt.windows))...), 1)
			if counts(got) != tt.want {
				t.Errorf("got %s, want %s", counts(got), tt.want)
			}
		})
	}
}

// sequence makes n claims of one delivery and returns their endpoints.
func sequence(tr *Scheduler, n int, again bool, ids ...string) string {
	var served []string
	a := queues(ids...)
	for range n {
		if again {
			a = queues(ids...)
		}
		got := tr.fill(a, 1)
		served = append(served, slices.Sorted(maps.Keys(got))...)
		for _, slots := range got {
			for _, s := range slots {
				tr.End(s, Success, 0)
				tr.Settle(s)
			}
		}
	}
	return strings.Join(served, " ")
}

// The next claim continues where the last one stopped, whether or not the queue was asked in
// between.
func TestTurnsContinueAcrossPlans(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		tr := newTestScheduler(testLimits{Concurrency: 1})
		want := "a1 b1 c1 a2 b1 c1 a3 b1 c1 a1"
		if got := sequence(tr, 10, again, "a1", "a2", "a3", "b1", "c1"); got != want {
			t.Errorf("again %v: served %s, want %s", again, got, want)
		}
	}
}

// Outcomes that wait to be recorded count only when there are many.
func TestRecordingCountsBeyondSpare(t *testing.T) {
	t.Parallel()
	tr := newTestScheduler(testLimits{Concurrency: 64, PerEndpoint: 4})
	tr.closeCircuits(4, "a1")
	a := queues("a1")
	total := 0
	for range 10 {
		for _, s := range tr.fill(a, 1)["a1"] {
			total++
			tr.End(s, Rejection, 0)
		}
	}
	if total != 16 {
		t.Errorf("%d outcomes wait, want 4 and 12 to spare", total)
	}
}

func TestEveryFourthClaimIsLateFirst(t *testing.T) {
	t.Parallel()
	tr := newTestScheduler(testLimits{})
	got := ""
	for range 12 {
		a := queues("a1", "b1")
		for _, s := range tr.Plan(a) {
			got += map[bool]string{true: "L", false: "."}[s.LateFirst]
		}
		tr.EndPlan(a, true)
	}
	if want := strings.Repeat("......LL", 3); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Endpoints that returned less than their share aren't asked again, the others are.
func TestDrainedEndpoints(t *testing.T) {
	t.Parallel()
	tr := newTestScheduler(testLimits{Concurrency: 9, PerEndpoint: 4})
	tr.closeCircuits(4, "a1", "b1")
	a := queues("a1", "b1")
	shares := tr.Plan(a)
	if want := []Share{{Endpoint: "a1", N: 3}, {Endpoint: "b1", N: 3}}; !slices.Equal(shares, want) {
		t.Fatalf("shares %v, want %v", shares, want)
	}
	for _, id := range []string{"a1", "b1", "b1", "b1"} {
		tr.Claimed(a, id, 0)
	}
	tr.EndPlan(a, true)
	if got := tr.fill(a, 1); counts(got) != "b1:1" {
		t.Errorf("then %s, want one more for b1", counts(got))
	}
	if some, soon := tr.Remaining(a); !some || !soon {
		t.Errorf("more: %v %v", some, soon)
	}
}

// The number of remembered endpoints is limited; working and busy ones are evicted last.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	tr := newTestScheduler(testLimits{})
	tr.limit.Remember = 100
	tr.closeCircuits(8, "good1", "good2")
	busy := tr.fill(queues("busy1"), 1)["busy1"][0]
	for i := range 1_000 {
		id := fmt.Sprint("x", i, "y")
		q := NewQueues(1)
		q.Add(id, id)
		for _, s := range tr.fill(q, 1)[id] {
			tr.End(s, Failure, 0)
			tr.Settle(s)
		}
		if len(tr.endpoints) > 100 || len(tr.accounts) > 200 {
			t.Fatalf("%d endpoints and %d accounts known", len(tr.endpoints), len(tr.accounts))
		}
	}
	for _, id := range []string{"good1", "good2", "busy1"} {
		if tr.endpoints[id] == nil {
			t.Errorf("%s was evicted", id)
		}
	}
	tr.End(busy, Success, 0)
	tr.Settle(busy)
	if !tr.IsIdle() {
		t.Error("not idle")
	}
}

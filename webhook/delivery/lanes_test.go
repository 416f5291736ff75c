package delivery

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// ids returns n identifiers of endpoints, each of an account of its own.
func ids(prefix string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("%s%c%c%c", prefix, 'a'+i/676%26, 'a'+i/26%26, 'a'+i%26))
	}
	return list
}

// total returns how many slots there are.
func total(got map[string][]*slot) (n int) {
	for _, slots := range got {
		n += len(slots)
	}
	return n
}

// each calls f for each slot.
func each(got map[string][]*slot, f func(s *slot)) {
	for _, slots := range got {
		for _, s := range slots {
			f(s)
		}
	}
}

func TestUnprovenEndpointsGetHalf(t *testing.T) {
	t.Parallel()
	for concurrency, want := range map[int]int{1: 1, 2: 1, 9: 4, 64: 32} {
		tr := newTestTraffic(t, Options{Concurrency: concurrency})
		unknown := ids("u", 100)
		if got := total(tr.fill(newAgenda(ready(unknown...)), 1)); got != want {
			t.Errorf("Concurrency %d: %d for unknown endpoints, want %d", concurrency, got, want)
		}
		proven := ids("p", 100)
		tr.prove(8, proven...)
		got := total(tr.fill(newAgenda(ready(append(unknown, proven...)...)), 1))
		if want := concurrency - want; got != want {
			t.Errorf("Concurrency %d: %d for proven ones beside them, want %d", concurrency, got, want)
		}
	}
}

// The other half is not kept free when nobody needs it.
func TestProvenEndpointsGetAll(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 16})
	proven := ids("p", 20)
	tr.prove(8, proven...)
	if got := total(tr.fill(newAgenda(ready(proven...)), 1)); got != 16 {
		t.Errorf("%d of 16 slots", got)
	}
}

func TestLateRequestsArePutAside(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 4, SlowConcurrency: 8})
	first, others := ids("a", 4), ids("b", 4)
	tr.prove(1, slices.Concat(first, others)...)
	got := tr.fill(newAgenda(ready(first...)), 10)
	b := newAgenda(ready(others...))
	if n := total(tr.fill(b, 10)); n != 0 {
		t.Fatalf("%d beside a full lane", n)
	}
	each(got, func(s *slot) {
		if !tr.late(s) {
			t.Error("no relief")
		}
	})
	if tr.used[fastSlots] != 0 || tr.used[slowSlots] != 4 || tr.inFlight != [laneCount]int{0, 4} || tr.used[restBytes] != 40 {
		t.Errorf("used %v, in flight %v", tr.used, tr.inFlight)
	}
	if n := total(tr.fill(b, 10)); n != 4 {
		t.Errorf("%d for others then, want all", n)
	}
	each(got, func(s *slot) {
		tr.end(s, saysYes)
		tr.leave(s)
	})
	if tr.used[slowSlots] != 0 || tr.used[restBytes] != 0 || tr.used[allBytes] != 40 {
		t.Errorf("left %v", tr.used)
	}
}

// New claims of a slow endpoint go to the slow lane and nowhere else.
func TestSlowEndpointsAreClaimedForTheSlowLane(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(tr *traffic, h *health){
		"last answer was late": func(tr *traffic, h *health) { h.judge(saysYes, true, 8) },
		"timed out":            func(tr *traffic, h *health) { h.judge(tookTooLong, true, 8) },
		"has a late request":   func(tr *traffic, h *health) { h.late++ },
	} {
		tr := newTestTraffic(t, Options{Concurrency: 4, SlowConcurrency: 8})
		h := tr.book("a1")
		spoil(tr, h)
		if got := total(tr.fill(newAgenda(ready("a1")), 1)); got == 0 || tr.used[fastSlots] != 0 || tr.used[slowSlots] != int64(got) {
			t.Errorf("%s: %d claimed, used %v", name, got, tr.used)
		}
	}
}

// Those of which nothing good is known have half of the slow lane, and claims
// leave a quarter of it to requests that become late.
func TestSlowLaneIsShared(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 4, SlowConcurrency: 16, PerEndpoint: 4})
	dead, slow := ids("d", 50), ids("s", 5)
	for _, id := range dead {
		tr.book(id).judge(tookTooLong, true, 4)
	}
	if got := total(tr.fill(newAgenda(ready(dead...)), 1)); got != 8 {
		t.Errorf("%d of dead endpoints, want 8", got)
	}
	tr.prove(4, slow...)
	for _, id := range slow {
		tr.book(id).judge(saysYes, true, 4)
	}
	if got := total(tr.fill(newAgenda(ready(slow...)), 1)); got != 4 {
		t.Errorf("%d of slow ones beside them, want 4", got)
	}
	proven := ids("p", 4)
	tr.prove(4, proven...)
	each(tr.fill(newAgenda(ready(proven...)), 1), func(s *slot) { tr.late(s) })
	if tr.inFlight != [laneCount]int{0, 16} {
		t.Errorf("in flight %v: those that hang now found no room", tr.inFlight)
	}
}

// What is late without room in the slow lane moves there as soon as there is
// some, unless it ends before.
func TestParkingWaitsForRoom(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 4, SlowConcurrency: 2})
	hanging, others := ids("a", 4), ids("b", 9)
	tr.prove(1, slices.Concat(hanging, others)...)
	var slots []*slot
	for _, id := range hanging {
		slots = append(slots, tr.fill(newAgenda(ready(id)), 1)[id]...)
	}
	for _, s := range slots {
		tr.late(s)
	}
	b := newAgenda(ready(others...))
	if got := total(tr.fill(b, 1)); got != 2 || tr.inFlight != [laneCount]int{4, 2} {
		t.Fatalf("%d claimed, in flight %v", got, tr.inFlight)
	}
	tr.end(slots[2], broke) // waits no more
	tr.end(slots[0], broke)
	if !tr.leave(slots[0]) || tr.inFlight != [laneCount]int{3, 2} || slots[3].lane != slow || slots[2].lane != fast {
		t.Errorf("in flight %v", tr.inFlight)
	}
	if n := total(tr.fill(b, 1)); n != 1 {
		t.Errorf("%d claimed for the slot that it left", n)
	}
}

func TestBytesBoundClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		maxBytes  int64
		sizes     []int // of what is in flight, of a proven endpoint
		proven    int
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
		kinds := map[string]int{"proven": tt.proven, "slow": tt.slow, "unknown": tt.new}
		for kind, want := range kinds {
			tr := newTestTraffic(t, Options{Concurrency: 64, PerEndpoint: 1, MaxBytes: tt.maxBytes})
			for i, size := range tt.sizes {
				id := fmt.Sprint("held", i)
				tr.prove(1, id)
				a := newAgenda(ready(id))
				tr.take(a, tr.plan(a), []Claim{{Endpoint: id, Size: size}})
			}
			list := ids("x", 100)
			for _, id := range list {
				if kind != "unknown" {
					tr.prove(1, id)
				}
				tr.book(id).slow = kind == "slow"
			}
			if got := len(tr.plan(newAgenda(ready(list...)))); got != want {
				t.Errorf("%s: %d for %s endpoints, want %d", tt.name, got, kind, want)
			}
		}
	}
}

// Large payloads of slow and unknown endpoints leave half of the memory to the
// others, also those that became late.
func TestHalfOfTheBytesIsForHealthyOnes(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{MaxBytes: 20_000_000})
	held := tr.fill(newAgenda(ready(ids("u", 100)...)), 1_000_000)
	if total(held) != 10 {
		t.Fatalf("%d unknown", total(held))
	}
	tr.prove(1, ids("p", 5)...)
	late := tr.fill(newAgenda(ready(ids("p", 5)...)), 1_000_000)
	each(late, func(s *slot) { tr.late(s) })
	each(held, func(s *slot) { tr.end(s, broke) })
	// 5 MB of 10 are left for those.
	if got := total(tr.fill(newAgenda(ready(ids("v", 100)...)), 1_000_000)); got != 5 {
		t.Errorf("%d unknown beside 5 late ones", got)
	}
	tr.prove(1, ids("q", 100)...)
	if got := total(tr.fill(newAgenda(ready(ids("q", 100)...)), 1_000_000)); got != 10 {
		t.Errorf("%d healthy ones beside them, want 10", got)
	}
}

// An endpoint whose payloads are large has fewer in flight.
func TestBytesOfOneEndpoint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ size, want int }{{800, 8}, {500_000, 4}, {1_000_000, 2}, {20_000_000, 1}} {
		tr := newTestTraffic(t, Options{Concurrency: 64, PerEndpoint: 8}) // a 32nd of 64 MiB
		tr.prove(8, "a1")
		a := newAgenda(ready("a1"))
		// At first nothing is known of its payloads.
		each(tr.fill(a, tt.size), func(s *slot) { tr.end(s, saysNo); tr.leave(s) })
		if got := total(tr.fill(a, tt.size)); got != tt.want {
			t.Errorf("%d payloads of %d bytes, want %d", got, tt.size, tt.want)
		}
	}
}

// A day of random events: the counts stay true and within their bounds, and
// whenever nobody was told of room, there is none that a claim could use.
func TestTrafficAddsUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		d := &day{t: t, r: rand.New(rand.NewPCG(seed, 1))}
		d.tr = newTestTraffic(t, Options{
			Concurrency: 1 + d.r.IntN(12), SlowConcurrency: 1 + d.r.IntN(12), PerEndpoint: 1 + d.r.IntN(4),
			MaxBytes: 1 + d.r.Int64N(20_000_000),
		})
		d.names = append(ids("a", 6), "b1", "b2", "b3", "c1", "c2")
		for range 2_000 {
			d.step()
			d.check(seed)
		}
	}
}

type day struct {
	t              *testing.T
	r              *rand.Rand
	tr             *traffic
	names          []string
	a              *agenda
	running, ended []*slot
	ahead, waiting []*slot // claimed ahead: on the way, and in line
	news           bool    // since the last plan that gave nothing
}

func (d *day) step() {
	switch d.r.IntN(5) {
	case 0:
		d.claim()
	case 4:
		if s := d.pick(&d.ahead); s != nil {
			d.waiting = append(d.waiting, s)
			s.endpoint.waiting = append(s.endpoint.waiting, s)
			d.next(s)
		}
	case 1:
		if len(d.running) > 0 {
			s := d.running[d.r.IntN(len(d.running))]
			if !s.late {
				d.news = d.tr.late(s) || d.news
				d.next(s)
			}
		}
	case 2:
		if s := d.pick(&d.running); s != nil {
			d.ended = append(d.ended, s)
			s.took = time.Duration(1 + d.r.IntN(int(2*aheadTime)))
			d.news = d.tr.end(s, []verdict{saysYes, saysYes, saysYes, saysNo, broke, tookTooLong, saysNothing}[d.r.IntN(7)]) || d.news
			d.next(s)
		}
	default:
		if s := d.pick(&d.ended); s != nil {
			d.news = d.tr.leave(s) || d.news
			d.next(s)
		}
	}
}

// next goes on with what was claimed ahead.
func (d *day) next(of *slot) {
	begun, back := d.tr.next(of.endpoint)
	d.running = append(d.running, begun...)
	for _, s := range back {
		d.ended = append(d.ended, s)
		d.news = d.tr.end(s, saysNothing) || d.news
	}
	d.waiting = slices.DeleteFunc(d.waiting, func(s *slot) bool { return slices.Contains(begun, s) || slices.Contains(back, s) })
	d.news = len(begun) > 0 && d.tr.isFed(of.endpoint) || d.news
}

func (d *day) pick(from *[]*slot) *slot {
	if len(*from) == 0 {
		return nil
	}
	i := d.r.IntN(len(*from))
	s := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return s
}

// claim goes on until a plan gives nothing, as the engine does.
func (d *day) claim() {
	var some []Endpoint
	for _, id := range d.names {
		if d.r.IntN(3) > 0 {
			some = append(some, to(id))
		}
	}
	d.a, d.news = newAgenda(some), false
	for {
		shares := d.tr.plan(d.a)
		if len(shares) == 0 {
			return
		}
		var claims []Claim
		for _, s := range shares {
			for range d.r.IntN(s.N + 1) {
				claims = append(claims, Claim{Endpoint: s.Endpoint, Size: d.r.IntN(largestPayload + 1)})
			}
		}
		for _, s := range d.tr.take(d.a, shares, claims) {
			switch {
			case s.refused:
				d.ended = append(d.ended, s)
				d.tr.end(s, saysNothing)
			case s.ahead:
				d.ahead = append(d.ahead, s)
			default:
				d.running = append(d.running, s)
			}
		}
	}
}

func (d *day) check(seed uint64) {
	tr := d.tr
	want := [pools]int64{}
	for _, s := range slices.Concat(d.running, d.ended, d.ahead, d.waiting) {
		size := s.size
		if s.ended {
			size = 0
		}
		if s.ahead {
			want[aheadSlots]++
			want[allBytes] += size
			continue
		}
		for _, p := range needs(s.lane, s.proven) {
			if p == allBytes || p == restBytes {
				want[p] += size
			} else {
				want[p]++
			}
		}
	}
	if tr.used != want {
		d.t.Fatalf("seed %d: used %v, want %v", seed, tr.used, want)
	}
	one := len(d.running) + len(d.ahead) + len(d.waiting) // one payload is always allowed
	if tr.used[fastSlots] > tr.caps[fastSlots] || tr.used[fastNew] > tr.caps[fastNew] || tr.used[slowSlots] > tr.slowTotal ||
		tr.used[slowNew] > tr.caps[slowNew] || tr.used[aheadSlots] > tr.caps[aheadSlots] || tr.used[allBytes] > tr.caps[allBytes] && one > 1 {
		d.t.Fatalf("seed %d: used %v of %v", seed, tr.used, tr.caps)
	}
	if int64(tr.inFlight[0]) != want[fastSlots] || int64(tr.inFlight[1]) != want[slowSlots] {
		d.t.Fatalf("seed %d: in flight %v, want %v", seed, tr.inFlight, want)
	}
	if d.a == nil || d.news {
		return
	}
	lacked, before := tr.lacked, make(map[string]health)
	for id, h := range tr.endpoints {
		before[id] = *h
	}
	for _, share := range tr.plan(d.a) {
		// Claiming ahead needs no news: it goes with the next claim.
		if it := d.a.items[share.Endpoint]; it.planned > 0 {
			d.t.Fatalf("seed %d: nobody was told of room for %v", seed, share)
		}
		tr.cancel(d.a.items[share.Endpoint])
	}
	tr.lacked = lacked
	for id, h := range before {
		tr.endpoints[id].hungry, tr.endpoints[id].goal = h.hungry, h.goal
	}
}

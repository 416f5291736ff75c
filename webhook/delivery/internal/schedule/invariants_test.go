package schedule

import "slices"

// check checks the invariants that hold at any time.
func (h *history) check() {
	h.checkUse()
	h.checkEndpoints()
	h.checkMoving()
	h.checkWaiting()
	if h.still && !h.open && h.q != nil {
		h.checkWake()
	}
}

// checkUse compares the usage with the deliveries' resources and with the limits.
func (h *history) checkUse() {
	var want [pools]int64
	payloads := 0
	for _, d := range h.all {
		size := d.size
		if d.state == recording {
			size = 0
		}
		if size > 0 {
			payloads++
		}
		if !d.started {
			want[prefetchSlots]++
			want[allBytes] += size
			continue
		}
		for _, p := range needs(d.bulkhead, d.probe) {
			if p == allBytes || p == restBytes {
				want[p] += size
			} else {
				want[p]++
			}
		}
	}
	if h.s.used != want {
		h.Fatalf("in use are %v, want %v", h.s.used, want)
	}
	half := func(n int) int64 { return int64(max(1, n/2)) }
	most := [pools]int64{
		fastSlots: int64(h.l.Fast), fastProbes: half(h.l.Fast), slowSlots: int64(h.l.Slow), slowProbes: half(h.l.Slow),
		allBytes: h.l.Bytes, restBytes: want[restBytes], prefetchSlots: int64(h.l.Fast), // see move for restBytes
	}
	if payloads == 1 {
		most[allBytes] = largestPayload
	}
	for p := range pools {
		if want[p] > most[p] {
			h.Fatalf("pool %d: %d in use, more than %d", p, want[p], most[p])
		}
	}
	if got := h.s.InFlight(); int64(got[Fast]) != want[fastSlots] || int64(got[Slow]) != want[slowSlots] {
		h.Fatalf("in flight %v, want %v", got, want)
	}
}

// checkEndpoints compares windows and circuits with their expected states.
func (h *history) checkEndpoints() {
	for id, p := range h.peers {
		e := h.s.peek(id)
		if e.window != p.window || e.closed != p.closed || e.slow != p.slow {
			h.Fatalf("%s: window %d, closed %v, slow %v, want %d, %v, %v", id, e.window, e.closed, e.slow, p.window, p.closed, p.slow)
		}
	}
}

// checkWaiting checks that waiting deliveries have something to wait for.
func (h *history) checkWaiting() {
	for id, p := range h.peers {
		if len(p.waiting) > 0 && h.count(p, func(d *tracked) bool { return d.started }) == 0 {
			h.Fatalf("%d deliveries of %s wait for nothing", len(p.waiting), id)
		}
	}
}

// checkMoving checks that no slow request keeps a fast slot while it could move.
func (h *history) checkMoving() {
	for _, d := range h.in(running) {
		if d.late && d.bulkhead == Fast && h.s.used[slowSlots] < int64(h.l.Slow) && (!d.probe || h.s.free(slowProbes) > 0) {
			h.Fatalf("a slow request to %s keeps a fast slot, in use are %v", d.to.id, h.s.used)
		}
	}
}

// checkWake checks that no plan would start anything unless an Effect asked for one.
func (h *history) checkWake() {
	short, before := h.s.short, make(map[string]endpoint)
	for id, e := range h.s.endpoints {
		before[id] = *e
	}
	for _, share := range h.s.Plan(h.q) {
		// Prefetching needs no wake-up: it goes with the next claim.
		if h.q.endpoints[share.Endpoint].planned > 0 {
			h.Fatalf("there is room for %+v, and nothing woke", share)
		}
	}
	h.s.EndPlan(h.q, false)
	h.s.short = short
	for id, e := range before {
		h.s.endpoints[id].throttled, h.s.endpoints[id].target = e.throttled, e.target
	}
}

// places has the slots of accounts and endpoints before a plan.
type places struct{ held map[string][Bulkheads]int }

func (h *history) position() places {
	at := places{held: make(map[string][Bulkheads]int)}
	for _, d := range h.all {
		if !d.started {
			continue
		}
		for _, id := range []string{d.to.id, d.to.account} {
			held := at.held[id]
			held[d.bulkhead]++
			at.held[id] = held
		}
	}
	return at
}

// checkPlan checks a plan against the windows, the bulkheads and the fairness of the round.
func (h *history) checkPlan(before places) {
	after := h.position()
	for _, q := range h.q.planned {
		p := h.peers[q.id]
		late := h.count(p, func(d *tracked) bool { return d.state == running && d.late }) > 0
		want := Fast
		if p.slow || late {
			want = Slow
		}
		if q.planned > 0 {
			h.mayStart(p, q.planned)
			if q.bulkhead != want || q.probe == p.closed {
				h.Fatalf("%s: bulkhead %d, probe %v; slow %v, late %v, closed %v", p.id, q.bulkhead, q.probe, p.slow, late, p.closed)
			}
		}
		if q.prefetch > 0 && (want == Slow || !p.closed) {
			h.Fatalf("%s has %d prefetched, slow %v, closed %v", p.id, q.prefetch, want == Slow, p.closed)
		}
		for _, id := range []string{p.id, p.account} {
			held := after.held[id]
			held[q.bulkhead] += q.planned
			after.held[id] = held
		}
	}
	for in := range Bulkheads {
		h.checkFree(in, before, after)
		h.checkFair(in, before, after)
	}
	for id, p := range h.peers {
		if h.q.endpoints[id] == nil {
			p.passed = [Bulkheads]int{}
		}
	}
}

// checkFree checks that an endpoint in the plan leaves as much free as it has, apart from what
// others get after it.
func (h *history) checkFree(in Bulkhead, before, after places) {
	left := h.freeSlots(in)
	for _, q := range h.q.planned {
		if q.bulkhead == in {
			left += q.planned
		}
	}
	for _, q := range h.q.planned {
		if held := after.held[q.id][in]; q.bulkhead == in && q.planned > 0 && left-q.planned < held-1 {
			h.Fatalf("%s has %d slots, had %d, and leaves %d", q.id, held, before.held[q.id][in], left-q.planned)
		}
	}
}

// freeSlots returns how many slots claims may take.
func (h *history) freeSlots(in Bulkhead) int {
	if in == Slow {
		return int(h.s.free(slowSlots))
	}
	return int(h.s.free(fastSlots))
}

// checkFair checks the round of one bulkhead: a queue that could take the last delivery of another
// one has at most one slot less, and isn't skipped forever. A plan only takes room, so what fits
// now also fitted before.
func (h *history) checkFair(in Bulkhead, before, after places) {
	for _, x := range h.q.endpoints {
		if x.bulkhead != in || x.drained || !h.couldTakeOne(x, in) {
			h.peers[x.id].passed[in] = 0
			continue
		}
		passed := 0
		for _, q := range h.q.planned {
			// Probes have room of their own.
			if q.planned == 0 || q.bulkhead != in || q == x || x.probe && !q.probe {
				continue
			}
			passed += q.planned
			same := q.account == x.account
			if !same && x.probe && !h.onlyProbes(q.account, in) {
				continue
			}
			if same && after.held[q.id][in]-1 > after.held[x.id][in] || !same && after.held[q.account][in]-1 > after.held[x.account][in] {
				h.Fatalf("%s of %s has %d and %d, and %s of %s got more than %d and %d", q.id, q.account, after.held[q.id][in],
					after.held[q.account][in], x.id, x.account, after.held[x.id][in], after.held[x.account][in])
			}
		}
		h.checkPassed(x, in, before, passed)
	}
}

// onlyProbes reports whether the plan has only probes for the account.
func (h *history) onlyProbes(account string, in Bulkhead) bool {
	return !slices.ContainsFunc(h.q.planned, func(q *endpointQueue) bool {
		return q.account == account && q.bulkhead == in && q.planned > 0 && !q.probe
	})
}

// couldTakeOne reports whether an endpoint could have one more delivery if another endpoint
// returned one.
func (h *history) couldTakeOne(x *endpointQueue, in Bulkhead) bool {
	e := h.s.peek(x.id)
	return e.prefetched == 0 && h.s.mayClaim(e, x.planned) && h.freeSlots(in)+1 > x.held
}

// checkPassed counts the deliveries of others that were planned while the
// account of x had nothing in flight. Each other account can have one before each
// endpoint of that account has one.
func (h *history) checkPassed(x *endpointQueue, in Bulkhead, before places, passed int) {
	p := h.peers[x.id]
	// A turn of the account for a working endpoint doesn't count for a probe.
	if x.planned > 0 || before.held[p.account][in] > 0 || x.probe && !h.onlyProbes(p.account, in) {
		p.passed[in] = 0
		return
	}
	accounts := make(map[string]int)
	for _, id := range h.names {
		accounts[h.peers[id].account]++
	}
	p.passed[in] += passed
	if p.passed[in] >= len(accounts)*accounts[p.account] {
		h.Fatalf("%s had nothing in flight, and was passed over %d times", p.id, p.passed[in])
	}
}

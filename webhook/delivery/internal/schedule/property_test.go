package schedule

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestInvariants checks the invariants of the package's documentation over random histories, with
// the test's own model of each delivery and endpoint.
func TestInvariants(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]func(*rapid.T) Limits{
		"a single slot": func(t *rapid.T) Limits {
			return Limits{Fast: 1, Slow: rapid.IntRange(1, 2).Draw(t, "slow"), Window: 1, Bytes: 64 << 20}
		},
		"few slots": func(t *rapid.T) Limits {
			return Limits{
				Fast: rapid.IntRange(1, 12).Draw(t, "fast"), Slow: rapid.IntRange(1, 12).Draw(t, "slow"),
				Window: rapid.IntRange(1, 4).Draw(t, "window"), Bytes: 64 << 20,
			}
		},
		"few bytes": func(t *rapid.T) Limits {
			return Limits{
				Fast: rapid.IntRange(4, 24).Draw(t, "fast"), Slow: rapid.IntRange(4, 24).Draw(t, "slow"),
				Window: rapid.IntRange(1, 4).Draw(t, "window"), Bytes: rapid.Int64Range(1, 20_000_000).Draw(t, "bytes"),
			}
		},
		"many slots": func(t *rapid.T) Limits {
			return Limits{Fast: 64, Slow: 64, Window: rapid.IntRange(2, 8).Draw(t, "window"), Bytes: 256 << 20}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				h := newHistory(t, limits(t))
				for range rapid.IntRange(1, 250).Draw(t, "steps") {
					h.step()
				}
				h.drain()
			})
		})
	}
}

// A state is that of a delivery.
type state int

const (
	loading   state = iota // prefetched
	ready                  // prefetched and loaded
	running                // sent
	recording              // ended
	settled
)

// A tracked is the test's model of a delivery.
type tracked struct {
	*Delivery
	to      *peer
	state   state
	started bool // sent at once or by an Effect
	late    bool
}

// A peer is the test's model of an endpoint.
type peer struct {
	id, account  string
	window       int
	closed, slow bool
	waiting      []*tracked     // ready, in order
	passed       [Bulkheads]int // deliveries of others that were planned while it had none
}

// A history drives a scheduler as the engine does.
type history struct {
	*rapid.T
	s     *Scheduler
	l     Limits
	all   []*tracked // deliveries that are not settled
	peers map[string]*peer
	names []string
	q     *Queues
	open  bool // a plan is under way
	still bool // the last plan gave nothing, and nothing asked for another one
}

func newHistory(t *rapid.T, l Limits) *history {
	l.Remember = 100
	h := &history{T: t, s: New(l), l: l, peers: make(map[string]*peer)}
	for _, id := range []string{"a1", "a2", "a3", "b1", "b2", "c1", "d1"} {
		h.names = append(h.names, id)
		h.peers[id] = &peer{id: id, account: id[:1], window: 1}
	}
	return h
}

func (h *history) step() {
	switch rapid.IntRange(0, 12).Draw(h.T, "step") {
	case 0, 1:
		h.claim(func() bool { return rapid.IntRange(0, 4).Draw(h.T, "due") > 0 })
	case 12:
		h.rounds()
	case 2, 3:
		for _, d := range h.draw(loading) {
			h.move(d, ready)
			d.to.waiting = append(d.to.waiting, d)
			h.follow(h.s.Loaded(d.Delivery))
		}
	case 4:
		if d := h.pick(running); d != nil && !d.late {
			h.slow(d)
		}
	case 5, 6, 7, 8:
		for _, d := range h.draw(running) {
			h.end(d, rapid.SampledFrom([]Result{
				Success, Success, Success, Success, Success, Success, Rejection, Failure, Timeout, Unsent,
			}).Draw(h.T, "result"))
		}
	default:
		for _, d := range h.draw(recording) {
			h.settle(d)
		}
	}
	h.check()
}

// rounds repeatedly ends everything and claims for all.
func (h *history) rounds() {
	for range rapid.IntRange(1, 30).Draw(h.T, "rounds") {
		for _, d := range h.in(running) {
			if d.to.slow && !d.late {
				h.slow(d)
			}
			h.end(d, Rejection)
		}
		for _, d := range h.in(recording) {
			h.settle(d)
		}
		h.claim(func() bool { return true })
	}
}

// in returns the deliveries in a state.
func (h *history) in(s state) (list []*tracked) {
	for _, d := range h.all {
		if d.state == s {
			list = append(list, d)
		}
	}
	return list
}

// pick returns one delivery in a state, or nil.
func (h *history) pick(s state) *tracked {
	list := h.in(s)
	if len(list) == 0 {
		return nil
	}
	return rapid.SampledFrom(list).Draw(h.T, "delivery")
}

// draw returns one delivery in a state, or all.
func (h *history) draw(s state) []*tracked {
	if rapid.IntRange(0, 3).Draw(h.T, "all") == 0 {
		return h.in(s)
	}
	if d := h.pick(s); d != nil {
		return []*tracked{d}
	}
	return nil
}

// move changes the state of a delivery, which only advances.
func (h *history) move(d *tracked, to state) {
	if to <= d.state {
		h.Fatalf("a delivery of %s in state %d is moved to %d", d.to.id, d.state, to)
	}
	d.state = to
	if to == settled {
		h.all = slices.DeleteFunc(h.all, func(other *tracked) bool { return other == d })
	}
}

// follow applies an Effect.
func (h *history) follow(e Effect) {
	h.still = h.still && !e.Wake
	for _, d := range e.Send {
		d := d.Job.(*tracked)
		h.leaveLine(d)
		h.start(d)
		if held := d.endpoint.held[Fast]; h.freeSlots(Fast) < held-1 {
			h.Fatalf("%s has %d slots and leaves %d", d.to.id, held, h.freeSlots(Fast))
		}
	}
	for _, d := range e.Return {
		d := d.Job.(*tracked)
		h.leaveLine(d)
		h.unsent(d)
	}
}

// leaveLine removes the first waiting delivery from its line.
func (h *history) leaveLine(d *tracked) {
	if d.state != ready || len(d.to.waiting) == 0 || d.to.waiting[0] != d {
		h.Fatalf("a delivery of %s in state %d is sent or returned out of order", d.to.id, d.state)
	}
	d.to.waiting = d.to.waiting[1:]
}

// start marks d as sent, and checks that this is allowed.
func (h *history) start(d *tracked) {
	h.mayStart(d.to, 1)
	if !d.to.closed || d.to.slow || h.count(d.to, func(d *tracked) bool { return d.state == running && d.late }) > 0 {
		h.Errorf("%s sends what was prefetched, closed %v, slow %v", d.to.id, d.to.closed, d.to.slow)
	}
	d.started = true
	h.move(d, running)
}

// mayStart checks that window and circuit allow n more requests.
func (h *history) mayStart(p *peer, n int) {
	spare := max(0, min(3*h.l.Window, (h.l.Fast-h.l.Window)/2))
	now := h.count(p, func(d *tracked) bool { return d.state == running }) + h.reserved(p)
	busy := now + max(0, h.count(p, func(d *tracked) bool { return d.state == recording && d.started })-spare)
	if p.closed && busy+n > p.window {
		h.Fatalf("%s starts %d beside %d in a window of %d", p.id, n, busy, p.window)
	}
	if !p.closed && now+n > 1 {
		h.Fatalf("%s is not closed and starts %d beside %d", p.id, n, now)
	}
}

// reserved returns how many deliveries of an endpoint are being claimed.
func (h *history) reserved(p *peer) int {
	if !h.open || h.q.endpoints[p.id] == nil {
		return 0
	}
	return h.q.endpoints[p.id].planned
}

func (h *history) count(p *peer, is func(d *tracked) bool) (n int) {
	for _, d := range h.all {
		if d.to == p && is(d) {
			n++
		}
	}
	return n
}

// unsent ends a delivery that was not sent.
func (h *history) unsent(d *tracked) {
	h.move(d, recording)
	h.follow(h.s.End(d.Delivery, Unsent, 0))
}

func (h *history) slow(d *tracked) {
	d.late = true
	h.follow(h.s.Slow(d.Delivery))
}

func (h *history) end(d *tracked, r Result) {
	if d.state != running { // an Effect did it
		return
	}
	h.move(d, recording)
	switch r {
	case Success:
		d.to.window, d.to.closed = min(d.to.window+1, h.l.Window), true
	case Failure, Timeout:
		d.to.window, d.to.closed = 1, false
	case Rejection, Unsent:
	}
	if r != Unsent {
		d.to.slow = d.late || r == Timeout
	}
	took := time.Duration(rapid.IntRange(1, 100).Draw(h.T, "ms")) * time.Millisecond
	h.follow(h.s.End(d.Delivery, r, took))
}

func (h *history) settle(d *tracked) {
	h.move(d, settled)
	h.follow(h.s.Settle(d.Delivery))
}

// claim claims until a plan gives nothing, as the engine does. Meanwhile requests continue.
func (h *history) claim(due func() bool) {
	h.q = NewQueues(len(h.names))
	for _, id := range h.names {
		if due() {
			h.q.Add(id, h.peers[id].account)
		}
	}
	for {
		h.still = true
		before := h.position()
		shares := h.s.Plan(h.q)
		h.checkPlan(before)
		if len(shares) == 0 {
			return
		}
		h.open = true
		if d := h.pick(running); d != nil && rapid.Bool().Draw(h.T, "meanwhile") {
			h.end(d, rapid.SampledFrom([]Result{Success, Failure, Timeout}).Draw(h.T, "result"))
		}
		if rapid.IntRange(0, 9).Draw(h.T, "claim fails") == 0 {
			h.s.EndPlan(h.q, false)
			h.open, h.still = false, false // the engine plans again after a pause
			return
		}
		h.take(shares)
	}
}

// take claims the shares of a plan, or less.
func (h *history) take(shares []Share) {
	for _, share := range shares {
		n := share.N
		if rapid.IntRange(0, 3).Draw(h.T, "drained") == 0 {
			n = rapid.IntRange(0, n).Draw(h.T, "n")
		}
		for range n {
			p := h.peers[share.Endpoint]
			d := &tracked{to: p, Delivery: h.s.Claimed(h.q, p.id, rapid.Int64Range(0, largestPayload).Draw(h.T, "size"))}
			d.Job = d
			h.all = append(h.all, d)
			switch {
			case d.Refused():
				h.unsent(d)
			case d.Prefetched():
				h.mayWait(p)
			default:
				d.started = true
				h.move(d, running)
			}
		}
	}
	h.s.EndPlan(h.q, true)
	h.open = false
}

// mayWait checks that the payloads of an endpoint are not too many to prefetch.
func (h *history) mayWait(p *peer) {
	var bytes int64
	for _, d := range h.all {
		if d.to == p && d.state < recording {
			bytes += d.size
		}
	}
	if most := h.l.Bytes / int64(max(1, h.l.Slow/h.l.Window)); bytes > most {
		h.Fatalf("%s has %d bytes with what was prefetched, more than %d", p.id, bytes, most)
	}
}

// drain ends everything, and checks that nothing is in use.
func (h *history) drain() {
	h.follow(h.s.Stop())
	for len(h.all) > 0 {
		for _, d := range h.in(loading) {
			h.move(d, ready)
			d.to.waiting = append(d.to.waiting, d)
			h.follow(h.s.Loaded(d.Delivery))
		}
		for _, d := range h.in(running) {
			h.end(d, Success)
		}
		for _, d := range h.in(recording) {
			h.settle(d)
		}
		if left := h.in(ready); len(left) > 0 {
			h.Fatalf("%d prefetched deliveries are neither sent nor returned", len(left))
		}
		h.check()
	}
	if !h.s.IsIdle() || h.s.used != [pools]int64{} {
		h.Fatalf("everything is settled, and in use are %v", h.s.used)
	}
	for id, e := range h.s.endpoints {
		if !e.isIdle() || e.bytes != 0 || e.slowRequests != 0 || e.held != [Bulkheads]int{} {
			h.Fatalf("everything is settled, and %s has %+v", id, *e)
		}
	}
}

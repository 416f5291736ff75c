package delivery

import (
	"cmp"
	"slices"
	"strings"
)

// traffic decides what is claimed. It knows what is in flight and how each
// endpoint has behaved; it does no work of its own, has no clock and no lock.
//
// A delivery's way through it: agenda, plan, then take or cancel, then perhaps
// late, then end, then leave.
type traffic struct {
	lanes
	endpoints map[string]*health
	accounts  map[string]*account
	turn      uint64 // counts the turns
}

func newTraffic(l limits) *traffic {
	t := &traffic{
		lanes: lanes{limits: l}, endpoints: make(map[string]*health), accounts: make(map[string]*account),
	}
	t.forgive()
	return t
}

// An agenda is the endpoints that have something due.
type agenda struct {
	groups []*group
	items  map[string]*item
}

// A group is the endpoints of one account.
type group struct {
	id   string
	rank rank
	open []*item // those that may get something in the plan being made
	all  []*item
}

// An item is one endpoint with something due.
type item struct {
	Endpoint
	rank    rank
	planned int // claims that the plan has for it
	ahead   int // claims that it has ahead of these
	lane    lane
	proven  bool
	empty   bool // it had less than the plan had for it
}

// A rank says who is next: who holds least, then who had no turn for longest.
type rank struct {
	held int
	turn uint64
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.held, other.held), cmp.Compare(r.turn, other.turn))
}

func compareGroups(x, y *group) int {
	return cmp.Or(x.rank.compare(y.rank), strings.Compare(x.id, y.id))
}

func compareItems(x, y *item) int {
	return cmp.Or(x.rank.compare(y.rank), strings.Compare(x.ID, y.ID))
}

// insert puts v where it belongs in a sorted list.
func insert[T any](list []T, v T, compare func(x, y T) int) []T {
	i, _ := slices.BinarySearchFunc(list, v, compare)
	return slices.Insert(list, i, v)
}

// newAgenda sorts the endpoints that are ready by account, but for those with an
// Err.
func newAgenda(ready []Endpoint) *agenda {
	a := &agenda{items: make(map[string]*item, len(ready))}
	groups := make(map[string]*group)
	for i := range ready {
		e := ready[i]
		if e.Err != nil {
			continue
		}
		g := groups[e.Account]
		if g == nil {
			g = &group{id: e.Account}
			groups[e.Account] = g
			a.groups = append(a.groups, g)
		}
		it := &item{Endpoint: e}
		a.items[e.ID] = it
		g.all = append(g.all, it)
	}
	return a
}

// more reports whether endpoints may have more than was claimed, and whether one
// of them will probably have room for it in a moment.
func (t *traffic) more(a *agenda) (some, soon bool) {
	for _, it := range a.items {
		if it.empty {
			continue
		}
		some = true
		if h := t.endpoints[it.ID]; h != nil && h.proven && h.lane() == fast {
			return true, true
		}
	}
	return some, false
}

// plan shares out the room that there is now, and reserves it. In each lane it
// goes to the account that holds least there, and within it to the endpoint that
// does, one delivery at a time; among equals they take turns, and the next plan
// goes on where this one stopped.
func (t *traffic) plan(a *agenda) []Share {
	t.forgive()
	var planned []*item
	for in := range laneCount {
		planned = t.planLane(a, in, planned)
	}
	planned = t.planAhead(a, planned)
	shares := make([]Share, len(planned))
	for i, it := range planned {
		h := t.endpoints[it.ID]
		h.claims++
		shares[i] = Share{Endpoint: it.ID, N: it.planned + it.ahead, LateFirst: h.claims%4 == 0}
	}
	return shares
}

// planLane appends the endpoints that get something in this lane.
func (t *traffic) planLane(a *agenda, in lane, planned []*item) []*item {
	waiting := make([]*group, 0, len(a.groups))
	for _, g := range a.groups {
		if t.open(g, in) {
			waiting = append(waiting, g)
		}
	}
	slices.SortFunc(waiting, compareGroups)
	for len(waiting) > 0 {
		g := waiting[0]
		waiting = waiting[1:]
		it := t.serve(g)
		if it == nil {
			continue
		}
		if it.planned == 1 {
			planned = append(planned, it)
		}
		waiting = insert(waiting, g, compareGroups)
	}
	return planned
}

// open prepares a group for a plan and reports whether it takes part.
func (t *traffic) open(g *group, in lane) bool {
	g.open = g.open[:0]
	for _, it := range g.all {
		if it.empty || it.planned > 0 {
			continue
		}
		it.lane, it.proven, it.rank = fast, false, rank{}
		if h := t.endpoints[it.ID]; h != nil {
			it.lane, it.proven = h.lane(), h.proven
			it.rank = rank{h.held[it.lane], h.turn}
		}
		if it.lane == in {
			g.open = append(g.open, it)
		}
	}
	slices.SortFunc(g.open, compareItems)
	g.rank = rank{}
	if a := t.accounts[g.id]; a != nil {
		g.rank = rank{a.held[in], a.turn}
	}
	return len(g.open) > 0
}

// serve reserves room for one delivery of the group and returns its endpoint, or
// nil when there is no room for any.
func (t *traffic) serve(g *group) *item {
	for len(g.open) > 0 {
		it := g.open[0]
		g.open = g.open[1:]
		if !t.fits(it) {
			continue
		}
		t.reserve(it)
		t.turn++
		t.endpoints[it.ID].turn, t.bookAccount(g.id).turn = t.turn, t.turn
		it.rank = rank{it.rank.held + 1, t.turn}
		g.rank = rank{g.rank.held + 1, t.turn}
		g.open = insert(g.open, it, compareItems)
		return it
	}
	return nil
}

// fits reports whether there is room for one delivery more of the endpoint.
func (t *traffic) fits(it *item) bool {
	h := t.endpoints[it.ID]
	if h == nil {
		return t.hasRoom(it.lane, it.proven, 0)
	}
	if h.ahead > 0 {
		h.hungry = true // once that is used up
		return false
	}
	h.hungry = !h.hasRoom(&t.limits, it.planned) || !t.hasRoom(it.lane, it.proven, int64(it.rank.held))
	return !h.hungry
}

// reserve counts one delivery of the endpoint as in flight.
func (t *traffic) reserve(it *item) {
	t.book(it.ID).running++
	t.add(it.lane, it.proven, 1, largestPayload)
	it.planned++
}

// take turns what was reserved into the slots of the claims that the plan got,
// in their order, and gives the rest of it back: endpoints that returned less
// than their share have no more.
func (t *traffic) take(a *agenda, shares []Share, claims []Claim) []*slot {
	slots := make([]*slot, len(claims))
	for i := range claims {
		slots[i] = t.claimed(a, &claims[i])
	}
	for _, share := range shares {
		it := a.items[share.Endpoint]
		if it.planned+it.ahead > 0 {
			it.empty = true
			h := t.endpoints[it.ID]
			h.hungry, h.goal = false, 0
		}
		t.cancel(it)
	}
	return slots
}

// claimed returns the slot of a claim. A claim that was not asked for gets one
// beyond the limits: it has to be settled in any case.
func (t *traffic) claimed(a *agenda, c *Claim) *slot {
	it := a.items[c.Endpoint]
	if it != nil && it.planned == 0 && it.ahead > 0 {
		return t.claimedAhead(it, c)
	}
	if it == nil || it.planned == 0 {
		it = &item{Endpoint: Endpoint{ID: c.Endpoint}}
		t.reserve(it)
	}
	it.planned--
	s := &slot{
		endpoint: t.book(c.Endpoint), account: t.bookAccount(it.Account),
		size: max(0, int64(c.Size)), lane: it.lane, proven: it.proven,
	}
	s.endpoint.bytes += s.size
	s.endpoint.weigh(s.size)
	t.add(s.lane, s.proven, 0, s.size-largestPayload)
	t.count(s, 1)
	return s
}

// cancel gives back what the plan has for the endpoint.
func (t *traffic) cancel(it *item) {
	n, ahead := it.planned, it.ahead
	if n+ahead == 0 {
		return
	}
	it.planned, it.ahead = 0, 0
	h := t.endpoints[it.ID]
	h.running -= n
	h.ahead -= ahead
	t.used[aheadSlots] -= int64(ahead)
	t.add(it.lane, it.proven, -int64(n), -int64(n)*largestPayload)
	t.parkMore()
}

// late tells that the request of s is in flight for longer than SlowAfter. It
// reports whether that made room that was lacking.
func (t *traffic) late(s *slot) bool {
	if s.ended {
		return false
	}
	s.late = true
	s.endpoint.late++
	if s.lane == fast {
		t.park(s)
	}
	return t.isFed(s.endpoint)
}

// end tells that the request of s has ended, or was not made, and what that says
// about its endpoint. It reports whether that made room that was lacking.
func (t *traffic) end(s *slot, v verdict) bool {
	h := s.endpoint
	s.ended = true
	h.bytes -= s.size
	if s.ahead {
		t.used[allBytes] -= s.size
		return t.isFed(h)
	}
	t.lanes.end(s)
	h.running--
	h.recording++
	if s.late {
		h.late--
	}
	h.judge(v, s.late, t.perEndpoint)
	if v == saysYes {
		h.learn(s.took)
	}
	return t.isFed(h)
}

// leave tells that the outcome of s is settled. It reports whether that made room
// that was lacking.
func (t *traffic) leave(s *slot) bool {
	if s.ahead {
		t.used[aheadSlots]--
		s.endpoint.ahead--
		return t.isFed(s.endpoint)
	}
	t.lanes.leave(s)
	s.endpoint.recording--
	return t.isFed(s.endpoint)
}

// isFed reports whether a plan could give more now than the last one did: to the
// endpoint, or because there is room that was lacking.
func (t *traffic) isFed(h *health) bool {
	if h.isLow() && h.isAhead() {
		h.goal = 0
		return true
	}
	if h.hungry && h.ahead == 0 && h.hasRoom(&t.limits, 0) {
		// What it lacks may be another thing than before, in the other lane.
		in := h.lane()
		if t.hasRoom(in, h.proven, int64(h.held[in])) {
			h.hungry = false
			return true
		}
	}
	return t.relieved()
}

// isIdle reports whether nothing is in flight.
func (t *traffic) isIdle() bool {
	return t.used[fastSlots]+t.used[slowSlots]+t.used[aheadSlots] == 0
}

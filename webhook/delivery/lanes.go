package delivery

import (
	"slices"
	"time"
)

// largestPayload is what a payload is taken for until its size is known, in
// bytes. The service makes none that is larger.
const largestPayload = 1_000_000

// A lane is one of the two groups of deliveries in flight.
type lane int

const (
	fast lane = iota // requests in their first moments
	slow             // those that take longer, and those to endpoints known for that
	laneCount
)

// A pool is something that deliveries in flight share.
type pool int

// The pools. A delivery takes from several at once, see needs.
const (
	fastSlots pool = iota
	fastNew        // the fast slots of endpoints that are not proven
	slowSlots
	slowNew    // the slow slots of endpoints that are not proven
	allBytes   // of payloads
	restBytes  // of payloads, but for those of proven endpoints in the fast lane
	aheadSlots // of what was claimed ahead; see planAhead
	pools
)

// limits are the bounds of the lanes. They do not change.
type limits struct {
	caps          [pools]int64 // what claims may fill
	slowTotal     int64        // the slots of the slow lane; what claims leave is for parking
	perEndpoint   int          // the largest window
	spare         int          // outcomes of an endpoint being recorded that its window does not count
	endpointBytes int64        // of payloads of one endpoint, but one payload is always allowed
	known         int          // how many endpoints, and how many accounts, are remembered
}

// newLimits returns the limits of an engine with options o, which are filled in.
func newLimits(o *Options) limits {
	first, later := int64(o.Concurrency), int64(o.SlowConcurrency)
	return limits{
		caps: [pools]int64{
			fastSlots: first, fastNew: max(1, first/2),
			// With the defaults the rest is as much as the fast lane has: what
			// begins to hang there finds room.
			slowSlots: later - later/4, slowNew: max(1, later/2),
			allBytes: o.MaxBytes, restBytes: o.MaxBytes / 2,
			aheadSlots: first,
		},
		slowTotal:   later,
		perEndpoint: o.PerEndpoint,
		spare:       max(0, min(3*o.PerEndpoint, (o.Concurrency-o.PerEndpoint)/2)),
		// So that it takes as many endpoints to fill the memory with payloads
		// that hang as it takes to fill the slow lane.
		endpointBytes: o.MaxBytes / max(1, later/int64(o.PerEndpoint)),
		known:         10_000,
	}
}

// A slot is the place of one delivery in flight, from its claim until its
// outcome is settled.
type slot struct {
	endpoint *health
	account  *account
	size     int64
	lane     lane
	proven   bool          // the endpoint was, when it was claimed
	late     bool          // the request is, or was, in flight for longer than SlowAfter
	ended    bool          // the request has ended, and its payload is gone
	ahead    bool          // claimed ahead, and not begun
	refused  bool          // claimed ahead, but there is no room for the payload
	took     time.Duration // the request, when it has ended
	job      *job          // for the run
}

// lanes count what is in flight.
type lanes struct {
	limits
	used     [pools]int64
	lacked   [pools]int64   // what free must exceed to be worth another plan; none is negative
	inFlight [laneCount]int // deliveries that were claimed
	parking  []*slot        // late ones that wait for room in the slow lane, in order
	closed   bool           // nothing that was claimed ahead is begun any more
}

// needs returns the pools that a delivery of this kind takes from, the slots of
// its lane first.
func needs(in lane, proven bool) []pool {
	switch {
	case in == slow && proven:
		return []pool{slowSlots, allBytes, restBytes}
	case in == slow:
		return []pool{slowSlots, slowNew, allBytes, restBytes}
	case proven:
		return []pool{fastSlots, allBytes}
	default:
		return []pool{fastSlots, fastNew, allBytes, restBytes}
	}
}

// add counts a number of slots, and bytes, of this kind in or out.
func (l *lanes) add(in lane, proven bool, slots, bytes int64) {
	for _, p := range needs(in, proven) {
		if p == allBytes || p == restBytes {
			l.used[p] += bytes
		} else {
			l.used[p] += slots
		}
	}
}

// free returns for how many deliveries more the pool has room.
func (l *lanes) free(p pool) int64 {
	free := l.caps[p] - l.used[p]
	if p != allBytes && p != restBytes {
		return free
	}
	if l.used[p] == 0 {
		return max(1, free/largestPayload) // whatever MaxBytes is
	}
	return free / largestPayload
}

// hasRoom reports whether one more delivery of this kind may be claimed, and
// notes what is lacking if not. held is how many slots of the lane its endpoint
// has.
//
// No endpoint may have more of a lane than is left free. So however many of them
// begin to hang at once, others find some room before that is noticed.
func (l *lanes) hasRoom(in lane, proven bool, held int64) bool {
	for i, p := range needs(in, proven) {
		least := int64(0)
		if i == 0 {
			least = held
		}
		if l.free(p) <= least {
			l.lack(p, least)
			return false
		}
	}
	return true
}

// lack notes that the pool lacks room until more than least is free.
func (l *lanes) lack(p pool, least int64) {
	if l.lacked[p] < 0 || least < l.lacked[p] {
		l.lacked[p] = least
	}
}

// forgive forgets what was lacking.
func (l *lanes) forgive() {
	for p := range l.lacked {
		l.lacked[p] = -1
	}
}

// relieved reports whether there is room now that was lacking.
func (l *lanes) relieved() bool {
	for p, least := range l.lacked {
		if least >= 0 && l.free(pool(p)) > least {
			return true
		}
	}
	return false
}

// full reports whether nothing can be claimed for a healthy endpoint, and sees to
// it that room for one is a relief.
func (l *lanes) full() bool { return !l.hasRoom(fast, true, 0) }

// park moves a late delivery to the slow lane, or has it wait for room there.
// Its bytes are counted there even when that makes them too many: then nothing
// more is claimed except for proven endpoints in the fast lane.
func (l *lanes) park(s *slot) {
	if l.used[slowSlots] >= l.slowTotal || !s.proven && l.free(slowNew) < 1 {
		l.parking = append(l.parking, s)
		return
	}
	l.count(s, -1)
	l.add(fast, s.proven, -1, -s.size)
	s.lane = slow
	l.add(slow, s.proven, 1, s.size)
	l.count(s, 1)
}

// count counts a claimed delivery in or out of its lane.
func (l *lanes) count(s *slot, n int) {
	l.inFlight[s.lane] += n
	s.endpoint.held[s.lane] += n
	s.account.held[s.lane] += n
}

// parkMore moves what waits for room in the slow lane and has it now.
func (l *lanes) parkMore() {
	if len(l.parking) == 0 || l.used[slowSlots] >= l.slowTotal {
		return
	}
	waiting := l.parking
	l.parking = nil
	for _, s := range waiting {
		l.park(s)
	}
}

// end counts the payload of s out: its request has ended.
func (l *lanes) end(s *slot) {
	if s.late && s.lane == fast {
		l.parking = slices.DeleteFunc(l.parking, func(other *slot) bool { return other == s })
	}
	l.add(s.lane, s.proven, 0, -s.size)
}

// leave counts the slot of s out: its outcome is settled.
func (l *lanes) leave(s *slot) {
	l.count(s, -1)
	l.add(s.lane, s.proven, -1, 0)
	l.parkMore()
}

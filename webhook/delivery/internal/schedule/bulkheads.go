package schedule

// largestPayload is the assumed size of a payload until its size is known, in bytes. The service
// creates none that is larger.
const largestPayload = 1_000_000

// A Bulkhead isolates some deliveries in flight from the others.
type Bulkhead int

// The bulkheads.
const (
	Fast      Bulkhead = iota // requests in their first moments
	Slow                      // requests that take longer, and those to slow endpoints
	Bulkheads                 // how many there are
)

// A pool is a resource that deliveries in flight share.
type pool int

// The pools. A delivery takes from several at once, see needs.
const (
	fastSlots pool = iota
	slowSlots
	fastProbes // slots of probes
	slowProbes
	allBytes  // of payloads
	restBytes // of payloads, except of those in the fast bulkhead that aren't probes
	prefetchSlots
	pools
)

// Limits are the resources of a scheduler's deliveries.
type Limits struct {
	Fast, Slow int   // slots of the bulkheads
	Window     int   // the largest window of an endpoint
	Bytes      int64 // of payloads
	Remember   int   // how many endpoints are remembered
}

// usage counts what is in use.
type usage struct {
	limits        [pools]int64 // what claims may fill
	slowTotal     int64        // the slots of the slow bulkhead; claims leave some for requests that move there
	endpointBytes int64        // of payloads of one endpoint, but one payload is always allowed
	used          [pools]int64
	short         [pools]int64   // what the last plan lacked: how much must be free; 0 for nothing
	inFlight      [Bulkheads]int // deliveries that were claimed
	moving        []*Delivery    // slow deliveries that wait for room in the slow bulkhead, in order
}

func newUsage(l Limits) usage {
	first, later := int64(l.Fast), int64(l.Slow)
	return usage{
		limits: [pools]int64{
			fastSlots: first, fastProbes: max(1, first/2),
			// With the defaults the rest is as large as the fast bulkhead, so all requests that
			// begin to hang there find room.
			slowSlots: later - later/4, slowProbes: max(1, later/2),
			allBytes: l.Bytes, restBytes: l.Bytes / 2,
			prefetchSlots: first,
		},
		slowTotal: later,
		// So it takes as many hanging endpoints to fill the memory as to fill the slow bulkhead.
		endpointBytes: l.Bytes / max(1, later/int64(l.Window)),
	}
}

// needs returns the pools that a delivery takes from, the slots of its bulkhead
// first.
func needs(in Bulkhead, probe bool) []pool {
	need := append(make([]pool, 0, 4), fastSlots+pool(in))
	if probe {
		need = append(need, fastProbes+pool(in))
	}
	need = append(need, allBytes)
	if probe || in == Slow {
		need = append(need, restBytes)
	}
	return need
}

// add counts a number of slots and bytes in or out.
func (u *usage) add(in Bulkhead, probe bool, slots, bytes int64) {
	for _, p := range needs(in, probe) {
		if p == allBytes || p == restBytes {
			u.used[p] += bytes
		} else {
			u.used[p] += slots
		}
	}
}

// count counts a claimed delivery in or out of its bulkhead.
func (u *usage) count(d *Delivery, n int) {
	u.inFlight[d.bulkhead] += n
	d.endpoint.held[d.bulkhead] += n
	d.account.held[d.bulkhead] += n
}

// free returns how many more deliveries the pool has room for.
func (u *usage) free(p pool) int64 {
	free := u.limits[p] - u.used[p]
	switch {
	case p != allBytes && p != restBytes:
		return free
	case u.used[p] == 0:
		return max(1, free/largestPayload) // one is always allowed
	default:
		return free / largestPayload
	}
}

// hasRoom reports whether one more delivery of this kind may be claimed. If not, it notes what is
// short. held is how many slots of the bulkhead its endpoint has; more than that must be free.
func (u *usage) hasRoom(in Bulkhead, probe bool, held int) bool {
	least := int64(held) + 1
	for _, p := range needs(in, probe) {
		if u.free(p) < least {
			if u.short[p] == 0 || least < u.short[p] {
				u.short[p] = least
			}
			return false
		}
		least = 1
	}
	return true
}

// hasFreed reports whether there is room now that was short.
func (u *usage) hasFreed() bool {
	for p, least := range u.short {
		if least > 0 && u.free(pool(p)) >= least {
			return true
		}
	}
	return false
}

// move moves a slow delivery to the slow bulkhead, or makes it wait for room there. Its bytes are
// counted there even if they exceed the limit: then only the fast bulkhead gets more claims, and no
// probes.
func (u *usage) move(d *Delivery) {
	if u.used[slowSlots] >= u.slowTotal || d.probe && u.free(slowProbes) < 1 {
		u.moving = append(u.moving, d)
		return
	}
	u.count(d, -1)
	u.add(Fast, d.probe, -1, -d.size)
	d.bulkhead = Slow
	u.add(Slow, d.probe, 1, d.size)
	u.count(d, 1)
}

// moveWaiting moves the waiting deliveries for which the slow bulkhead has room now.
func (u *usage) moveWaiting() {
	if len(u.moving) == 0 || u.used[slowSlots] >= u.slowTotal {
		return
	}
	waiting := u.moving
	u.moving = nil
	for _, d := range waiting {
		if !d.ended {
			u.move(d)
		}
	}
}

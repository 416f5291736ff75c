package delivery

import (
	"cmp"
	"slices"
	"time"
)

// A verdict is what an attempt says about its endpoint.
type verdict int

const (
	saysNothing verdict = iota // not sent, or cut off by a shutdown
	saysYes                    // answered 2xx
	saysNo                     // answered with another status
	broke                      // no answer, or not all of it
	tookTooLong                // the same, for lack of time
)

// verdictOf returns the verdict of an attempt of this class.
func verdictOf(class string) verdict {
	switch class {
	case "":
		return saysYes
	case ClassStatus, ClassRedirect:
		return saysNo
	case ClassCanceled, ClassURL, ClassSecret, ClassPayload:
		return saysNothing
	case ClassTimeout:
		return tookTooLong
	default:
		return broke
	}
}

// health is what this run knows of one endpoint, and what it has in flight.
type health struct {
	window int  // how many requests may be in flight
	proven bool // it accepted something since it last failed
	slow   bool // its last attempt took longer than SlowAfter, or timed out

	held      [laneCount]int // slots in each lane
	running   int            // requests in flight, and those that are being claimed
	late      int            // of them, those in flight for longer than SlowAfter
	recording int            // outcomes that are not settled
	bytes     int64          // of the payloads of running ones
	size      int64          // of a payload, as the last ones were

	pace    time.Duration // how long a success takes; 0 before the first
	ahead   int           // claimed ahead, or being claimed, and not begun
	goal    int           // how much to claim ahead; 0 when there is nothing more
	waiting []*slot       // claimed ahead and ready to begin, in order

	claims int    // how often something was claimed for it
	turn   uint64 // when it last had a turn
	hungry bool   // the last plan had no room for more of it
}

// judge draws the consequences of an attempt, which was late or not.
//
// A status other than 2xx leaves the window and the proof as they are: such an
// endpoint takes no more time than others, so it neither earns nor loses room.
func (h *health) judge(v verdict, late bool, most int) {
	switch v {
	case saysNothing:
		return
	case saysYes:
		h.window, h.proven = min(h.window+1, most), true
	case broke, tookTooLong:
		h.window, h.proven = 1, false
	}
	h.slow = late || v == tookTooLong
}

// lane returns where new claims belong.
func (h *health) lane() lane {
	if h.slow || h.late > 0 {
		return slow
	}
	return fast
}

// hasRoom reports whether the endpoint's own limits allow another claim, of
// which there are planned already.
func (h *health) hasRoom(l *limits, planned int) bool {
	if !h.inWindow(l) {
		return false
	}
	return h.running == 0 || h.bytes+int64(planned+1)*h.size <= l.endpointBytes
}

// inWindow reports whether the endpoint's window has room.
func (h *health) inWindow(l *limits) bool {
	return h.running+max(0, h.recording-l.spare) < h.window
}

// weigh takes note of the size of a payload. A smaller one than before counts
// little, so that the next claim does not bring many large ones.
func (h *health) weigh(size int64) {
	h.size = max(size, h.size-(h.size-size)/8)
}

// isUnknown reports whether h says no more than that nothing is known.
func (h *health) isUnknown() bool { return h.window == 1 && !h.proven && !h.slow }

func (h *health) isIdle() bool { return h.running == 0 && h.recording == 0 && h.ahead == 0 }

// book returns what is known of an endpoint, to be changed. It forgets others
// when it knows too many: never those with something in flight, and those of
// which nothing is known, or nothing was heard for longest, first.
func (t *traffic) book(endpoint string) *health {
	if h := t.endpoints[endpoint]; h != nil {
		return h
	}
	if len(t.endpoints) >= t.known {
		t.forget()
	}
	h := &health{window: 1}
	t.endpoints[endpoint] = h
	return h
}

// forget drops a quarter of the endpoints, if that many are idle.
func (t *traffic) forget() {
	var idle []string
	for id, h := range t.endpoints {
		if h.isIdle() {
			idle = append(idle, id)
		}
	}
	slices.SortFunc(idle, func(a, b string) int {
		x, y := t.endpoints[a], t.endpoints[b]
		if x.isUnknown() != y.isUnknown() {
			if x.isUnknown() {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.turn, y.turn)
	})
	for _, id := range idle[:min(len(idle), 1+t.known/4)] {
		delete(t.endpoints, id)
	}
}

// An account is what is known of one.
type account struct {
	held [laneCount]int // slots in each lane
	turn uint64         // when it last had a turn
}

// bookAccount returns what is known of an account, to be changed. Of too many it
// forgets those that have nothing in flight and no turn among the last ones.
func (t *traffic) bookAccount(id string) *account {
	if a := t.accounts[id]; a != nil {
		return a
	}
	if len(t.accounts) >= 2*t.known {
		for id, a := range t.accounts {
			if a.held == [laneCount]int{} && a.turn+uint64(t.known) < t.turn { //nolint:gosec // known is a small constant
				delete(t.accounts, id)
			}
		}
	}
	a := &account{}
	t.accounts[id] = a
	return a
}

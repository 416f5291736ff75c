package httpx

import "time"

// FailureBurst is how often authentication may fail at once before it is limited.
const FailureBurst = failureBurst

// Limits are all limits of concurrent work, most of which are derived from Options.
type Limits = bounds

// SetLimits changes some of them.
func (h *Handler) SetLimits(change func(*Limits)) {
	l := h.bounds
	change(&l)
	h.bound(l)
}

// SetNow sets the clock of the limiters.
func (h *Handler) SetNow(now func() time.Time) { h.now = now }

// SetGrace sets how long clients that send or take files may pause.
func (h *Handler) SetGrace(d time.Duration) { h.grace = d }

// Waiting returns how many requests wait for a slot.
func (h *Handler) Waiting() int {
	n := 0
	for _, g := range []*gate{h.lookups, h.gate, h.listGate, h.heavyGate, h.exportGate} {
		g.mu.Lock()
		for _, l := range g.lines {
			n += l.waiting.Len()
		}
		g.mu.Unlock()
	}
	return n
}

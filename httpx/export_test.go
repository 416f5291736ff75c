package httpx

import "time"

// SetGrace changes how long clients that send or take files may keep the
// Handler waiting.
func (h *Handler) SetGrace(d time.Duration) { h.grace = d }

// Waiting returns how many requests wait for their turn.
func (h *Handler) Waiting() int {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	return h.gate.newcomer.Len() + h.gate.returner.Len()
}

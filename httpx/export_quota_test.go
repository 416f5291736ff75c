package httpx

import "time"

// FailureBurst is how often authentication may fail at once before it is limited.
const FailureBurst = failureBurst

// SetNow sets the clock of the limiters.
func (h *Handler) SetNow(now func() time.Time) { h.now = now }

// Remembered returns the number of remembered addresses with failures.
func (h *Handler) Remembered() int {
	h.failures.mu.Lock()
	defer h.failures.mu.Unlock()
	return len(h.failures.young) + len(h.failures.old)
}

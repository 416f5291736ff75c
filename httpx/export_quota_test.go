package httpx

import "time"

// FailureBurst is how often authentication may fail before it is limited.
const FailureBurst = failureBurst

// SetNow changes the clock of the limits.
func (h *Handler) SetNow(now func() time.Time) { h.now = now }

// Remembered returns how many addresses with a failure are remembered.
func (h *Handler) Remembered() int {
	h.failures.mu.Lock()
	defer h.failures.mu.Unlock()
	return len(h.failures.young) + len(h.failures.old)
}

package console

import "time"

// SetLimits sets how many responses a search looks at, and how long a summary counts.
func (h *Handler) SetLimits(searched int, count time.Duration) {
	h.searched, h.countTime = searched, count
}

// SetNow sets the clock.
func (h *Handler) SetNow(now func() time.Time) { h.now = now }

// Mailed waits until the mail of all replies so far was sent.
func (h *Handler) Mailed() { h.mailing.Wait() }

package console

import "time"

// SetSearched sets how many responses a filter searches.
func (h *Handler) SetSearched(n int) { h.searched = n }

// SetNow sets the clock.
func (h *Handler) SetNow(now func() time.Time) { h.now = now }

// Mailed waits until the mail of all replies so far was sent.
func (h *Handler) Mailed() { h.mailing.Wait() }

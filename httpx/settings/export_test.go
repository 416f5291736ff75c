package settings

import "time"

// SetSearched sets how many responses a filter looks at.
func (h *Handler) SetSearched(n int) { h.searched = n }

// SetNow sets the clock.
func (h *Handler) SetNow(now func() time.Time) { h.now = now }

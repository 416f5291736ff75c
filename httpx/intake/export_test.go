package intake

import "time"

// SetNow sets the clock.
func (h *Handler) SetNow(now func() time.Time) { h.now = now }

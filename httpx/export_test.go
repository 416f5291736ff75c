package httpx

import "time"

// SetGrace changes how long clients that send or take files may keep the
// Handler waiting.
func (h *Handler) SetGrace(d time.Duration) { h.grace = d }

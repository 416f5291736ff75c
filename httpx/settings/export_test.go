package settings

import "time"

// SetSearched sets how many responses a filter looks at.
func (h *Handler) SetSearched(n int) { h.searched = n }

// SetNow sets the clock.
func (h *Handler) SetNow(now func() time.Time) { h.now = now }

// Escaped returns how many bytes of a page a text is counted as.
func Escaped(text string) int { return escaped(text) }

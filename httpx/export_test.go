package httpx

import (
	"time"

	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/limits"
)

// FailureBurst is how often authentication may fail at once before it is limited.
const FailureBurst = limits.FailureBurst

// Limits are all limits of concurrent work, most of which are derived from Options.
type Limits = gate.Bounds

// SetLimits changes some of them.
func (h *Handler) SetLimits(change func(*Limits)) {
	l := h.shared.Bounds
	change(&l)
	h.shared = gate.NewShared(l)
}

// SetGrace sets how long clients that send or take files may pause.
func (h *Handler) SetGrace(d time.Duration) { h.grace = d }

// SetArchived sets the limit of files in an archive.
func (h *Handler) SetArchived(n int) { h.archived = n }

// SetBodyGrace sets how long clients may take for a body over HTTP/2.
func (h *Handler) SetBodyGrace(d time.Duration) { h.bodyGrace = d }

// Waiting returns how many requests wait for a slot.
func (h *Handler) Waiting() int {
	n := 0
	for _, g := range []*gate.Gate{h.shared.Lookups, h.shared.Requests, h.shared.Lists, h.shared.Heavy, h.shared.Exports} {
		n += g.Waiting()
	}
	return n
}

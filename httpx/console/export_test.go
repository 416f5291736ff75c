package console

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// SetTimes sets how long a page searches, and how long a view of a summary counts.
func (h *Handler) SetTimes(search, count time.Duration) { h.searchTime, h.countTime = search, count }

// SetDeleteTime sets how long a request deletes responses of a campaign.
func (h *Handler) SetDeleteTime(d time.Duration) { h.deleteTime = d }

// Mailed waits until the mail of all replies so far was sent.
func (h *Handler) Mailed() { h.mailing.Wait() }

// Pages returns the permissions that each page needs, by pattern.
func (h *Handler) Pages() map[string][]formsvc.Permission { return h.needs }

// HoldPasswords takes all slots of unknown networks, and returns what gives them back.
func (h *Handler) HoldPasswords(ctx context.Context) (release func(), err error) {
	a, err := h.passwords.Acquire(ctx, "a")
	if err != nil {
		return nil, err
	}
	b, err := h.passwords.Acquire(ctx, "b")
	return func() { a.Release(); b.Release() }, err
}

package httpx

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// refusalsEvery is the shortest time between two log records about refused requests: one for each would add load.
const refusalsEvery = 10 * time.Second

// overloaded returns the problem for a request beyond a limit. If the request waited, its connection stays open, since
// a new one costs more than the reply. If it didn't wait, the connection is closed: the client would use it to retry at once.
func (h *Handler) overloaded(c *call, why error) error {
	if err := c.r.Context().Err(); err != nil {
		p := wire.ProblemOf(c.r.Context(), err)
		p.Overload = true
		return p
	}
	h.refused.Add(1)
	due := false
	h.refusals.Do(func() { due = true }) // which locks, so the logger must not run there
	if due {
		h.logger.LogAttrs(c.r.Context(), slog.LevelWarn, "overloaded: requests were refused", slog.Int64("requests", h.refused.Swap(0)))
	}
	return &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: "unavailable", Cause: why,
		Told: true, Overload: true, HangUp: !errors.Is(why, gate.ErrNoSlot),
		Detail: "The service is overloaded. Nothing was changed; retry.",
	}
}

// transfer takes slots for a file transfer or an export; done frees them. The caller releases the call's own slot once it waits for the
// client.
func (h *Handler) transfer(c *call, weight int64) (done func(), err error) {
	account := string(c.who.AccountID)
	if !h.shared.Transfers.Take(account, weight) {
		return nil, wire.Refuse(http.StatusServiceUnavailable, "too_many_transfers",
			"The maximum number of transfers is in progress. Nothing was changed; retry.")
	}
	return func() { h.shared.Transfers.Give(account, weight) }, nil
}

package httpx

import (
	"net/http"

	"github.com/formsvc/toolkit/httpx/internal/wire"
)

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

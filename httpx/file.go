package httpx

import (
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

// transfer takes one of the places for files on their way, in exchange for that among
// the other requests; done gives it back.
func (h *Handler) transfer(c *call) (done func(), err error) {
	select {
	case h.transfers <- struct{}{}:
		c.leave()
		return func() { <-h.transfers }, nil
	default:
		return nil, &problem{
			status: http.StatusServiceUnavailable, code: "too_many_transfers",
			detail: "As many transfers are on their way as may be at once. Nothing was changed; try again.",
		}
	}
}

func (h *Handler) listFiles(c *call) error {
	q, sum, err := c.listQuery(pageParams)
	if err != nil {
		return err
	}
	page, err := h.svc.Files.List(c.r.Context(), formsvc.FileQuery{
		AccountID: c.who.AccountID, CampaignID: c.ids[0], ResponseID: c.ids[1], Page: q.page,
	})
	if err != nil {
		return err
	}
	return sendList(c, &q, sum, &page, func(b []byte, x *formsvc.File) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

package httpx

import (
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

// transfer takes one of the places for files on their way; done gives it back.
func (h *Handler) transfer() (done func(), err error) {
	select {
	case h.transfers <- struct{}{}:
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
	c.beginList()
	var last formsvc.ID
	for i := range page.Items {
		c.beginItem(i)
		c.out = formsvc.AppendFile(c.out, &page.Items[i])
		if page.More {
			last = page.Items[i].ID
		}
	}
	return c.endList(&q, page.Total, last, sum)
}

package httpx

import (
	"github.com/formsvc/toolkit/formsvc"
)

func (h *Handler) listFiles(c *call) error {
	q, sum, err := c.listQuery(pageParams)
	if err != nil {
		return err
	}
	page, err := h.svc.Files.List(c.ctx(), formsvc.FileQuery{
		AccountID: c.who.AccountID, CampaignID: c.ids[0], ResponseID: c.ids[1], Page: q.page,
	})
	if err != nil {
		return err
	}
	return sendList(c, &q, sum, &page, func(b []byte, x *formsvc.File) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

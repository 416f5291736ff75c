package httpx

import "github.com/formsvc/toolkit/formsvc"

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

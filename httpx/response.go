package httpx

import (
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

func (c *call) responseKey() formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: c.who.AccountID, CampaignID: c.ids[0], ID: c.ids[1]}
}

func (h *Handler) listResponses(c *call) error {
	q, sum, err := c.listQuery(pageParams | filterParams)
	if err != nil {
		return err
	}
	page, err := h.svc.Responses.List(c.r.Context(), formsvc.ResponseQuery{
		AccountID: c.who.AccountID, CampaignID: c.ids[0], Filter: q.filter, Page: q.page,
	})
	if err != nil {
		return err
	}
	return sendList(c, &q, sum, &page, func(b []byte, x *formsvc.Response) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

func (h *Handler) createResponse(c *call) error {
	if err := h.readJSON(c); err != nil {
		return err
	}
	in, err := c.body.responseInput()
	if err != nil {
		return h.refuse(c, err, func(svc *formsvc.Service) error {
			_, err := svc.Responses.Create(c.r.Context(), formsvc.CampaignKey{AccountID: c.who.AccountID, ID: c.ids[0]}, in)
			return err
		})
	}
	return once(h, c, func(svc *formsvc.Service) (formsvc.Response, error) {
		return svc.Responses.Create(c.r.Context(), formsvc.CampaignKey{AccountID: c.who.AccountID, ID: c.ids[0]}, in)
	}, func(r *formsvc.Response, b []byte) reply {
		return reply{
			status: http.StatusCreated, etag: responseTag(r.Version), location: h.location(c, r.ID),
			body: r.AppendJSON(b), about: r.ID,
		}
	})
}

func (h *Handler) getResponse(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	r, err := h.svc.Responses.Get(c.r.Context(), c.responseKey())
	if err != nil {
		return err
	}
	return c.sendResponse(http.StatusOK, revalidate, &r)
}

func (h *Handler) updateResponse(c *call) error {
	if err := h.readJSON(c); err != nil {
		return err
	}
	patch, err := c.body.responsePatch()
	if err != nil {
		return h.refuse(c, err, func(svc *formsvc.Service) error {
			_, err := svc.Responses.Update(c.r.Context(), c.responseKey(), patch)
			return err
		})
	}
	cond, err := c.ifMatch(false)
	if err != nil {
		return err
	}
	patch.IfVersion, err = cond.version(func() (int64, error) {
		r, err := h.svc.Responses.Get(c.r.Context(), c.responseKey())
		return r.Version, err
	})
	if err != nil {
		return err
	}
	r, err := h.svc.Responses.Update(c.r.Context(), c.responseKey(), patch)
	if err != nil {
		return err
	}
	return c.sendResponse(http.StatusOK, noStore, &r)
}

// sendResponse answers with the response, or 304 where a cache may ask whether
// it has it already.
func (c *call) sendResponse(status int, cache []string, r *formsvc.Response) error {
	tag := responseTag(r.Version)
	c.setHeader("Etag", tag)
	if c.route.Method == http.MethodGet && c.hasTag(tag) {
		return c.sendNotModified()
	}
	c.out = r.AppendJSON(c.out)
	return c.send(status, cache)
}

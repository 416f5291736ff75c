package httpx

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/formsvc/toolkit/formsvc"
)

func (c *call) deliveryKey() formsvc.DeliveryKey {
	return formsvc.DeliveryKey{AccountID: c.who.AccountID, ID: c.ids[0]}
}

func (h *Handler) listDeliveries(c *call) error {
	q, sum, err := c.listQuery(pageParams | paramState)
	if err != nil {
		return err
	}
	page, err := h.svc.Deliveries.List(c.r.Context(), formsvc.DeliveryQuery{
		AccountID: c.who.AccountID, WebhookID: c.ids[0], State: q.state, Page: q.page,
	})
	if err != nil {
		return err
	}
	c.beginList()
	var last formsvc.ID
	for i := range page.Items {
		c.beginItem(i)
		c.out = appendDelivery(c.out, &page.Items[i], shortAnswer)
		if page.More {
			last = page.Items[i].ID
		}
	}
	return c.endList(&q, page.Total, last, sum)
}

func (h *Handler) getDelivery(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	d, err := h.svc.Deliveries.Get(c.r.Context(), c.deliveryKey())
	if err != nil {
		return err
	}
	return c.sendDelivery(http.StatusOK, revalidate, &d)
}

// redeliver sends one delivery again.
func (h *Handler) redeliver(c *call) error {
	if err := h.readOptionalJSON(c); err != nil {
		return err
	}
	if err := c.body.nothing(); err != nil {
		return err
	}
	d, err := h.svc.Deliveries.Redeliver(c.r.Context(), c.deliveryKey())
	if errors.Is(err, formsvc.ErrConflict) {
		return &problem{
			status: http.StatusConflict, code: "delivery_in_progress", cause: err,
			detail: "An attempt is under way. Wait for its result, then try again.",
		}
	}
	if err != nil {
		return err
	}
	return c.sendDelivery(http.StatusOK, noStore, &d)
}

// redeliverFailed sends the deliveries of a webhook again that failed for the
// last time since then.
func (h *Handler) redeliverFailed(c *call) error {
	if err := h.readJSON(c); err != nil {
		return err
	}
	since, err := c.body.since()
	if err != nil {
		return err
	}
	n, err := h.svc.Deliveries.RedeliverFailed(c.r.Context(), c.webhookKey(), since)
	if err != nil {
		return err
	}
	c.out = append(c.out, `{"redelivered":`...)
	c.out = append(strconv.AppendInt(c.out, int64(n), 10), '}')
	return c.send(http.StatusOK, noStore)
}

// sendDelivery answers with the delivery, or 304 where a cache may ask whether
// it has it already.
func (c *call) sendDelivery(status int, cache []string, d *formsvc.Delivery) error {
	c.out = appendDelivery(c.out, d, wholeAnswer)
	tag := contentTag(c.out)
	c.setHeader("Etag", tag)
	if c.route.Method == http.MethodGet && c.hasTag(tag) {
		return c.sendNotModified()
	}
	return c.send(status, cache)
}

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
	page, err := h.svc.Deliveries.List(c.ctx(), formsvc.DeliveryQuery{
		AccountID: c.who.AccountID, WebhookID: c.ids[0], State: q.state, Page: q.page,
	})
	if err != nil {
		return err
	}
	return sendList(c, &q, sum, &page, func(b []byte, x *formsvc.Delivery) ([]byte, formsvc.ID) {
		return appendDelivery(b, x, shortAnswer), x.ID
	})
}

func (h *Handler) getDelivery(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	d, err := h.svc.Deliveries.Get(c.ctx(), c.deliveryKey())
	if err != nil {
		return err
	}
	a := deliveryReply(http.StatusOK, &d, c.out)
	c.setHeader("Etag", a.etag)
	if c.hasTag(a.etag) {
		return c.sendNotModified()
	}
	c.out = a.body
	return c.send(a.status, revalidate)
}

// redeliver sends one delivery again.
func (h *Handler) redeliver(c *call) error {
	if err := h.readOptionalJSON(c); err != nil {
		return err
	}
	if err := c.body.nothing(); err != nil {
		return err
	}
	return once(h, c, func(svc *formsvc.Service) (formsvc.Delivery, error) {
		d, err := svc.Deliveries.Redeliver(c.ctx(), c.deliveryKey())
		if errors.Is(err, formsvc.ErrConflict) {
			err = &problem{
				status: http.StatusConflict, code: "delivery_in_progress", passing: true, cause: err,
				detail: "An attempt is in progress. Wait for its result, then retry.",
			}
		}
		return d, err
	}, func(d *formsvc.Delivery, b []byte) reply { return deliveryReply(http.StatusOK, d, b) })
}

// deliveryReply returns the reply with a delivery.
func deliveryReply(status int, d *formsvc.Delivery, b []byte) reply {
	b = appendDelivery(b, d, wholeAnswer)
	return reply{status: status, etag: contentTag(b), body: b}
}

// redeliverFailed sends again all deliveries of a webhook that failed permanently since the given time.
func (h *Handler) redeliverFailed(c *call) error {
	if err := h.readJSON(c); err != nil {
		return err
	}
	since, err := c.body.since()
	if err != nil {
		return err
	}
	return once(h, c, func(svc *formsvc.Service) (int, error) {
		return svc.Deliveries.RedeliverFailed(c.ctx(), c.webhookKey(), since)
	}, func(n *int, b []byte) reply {
		b = strconv.AppendInt(append(b, `{"redelivered":`...), int64(*n), 10)
		return reply{status: http.StatusOK, body: append(b, '}')}
	})
}

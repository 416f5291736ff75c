package httpx

import (
	"errors"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

func (c *call) deliveryKey() formsvc.DeliveryKey {
	return formsvc.DeliveryKey{AccountID: c.who.AccountID, ID: c.ids[0]}
}

// shortAnswer is how many bytes of a receiver's reply a list shows; a single delivery shows all that is stored.
const shortAnswer = 256

func (h *Handler) listDeliveries(c *call) error {
	return serveList(c, pageParams+" state", func(q *listQuery) (formsvc.Page[formsvc.Delivery], error) {
		return h.svc.Deliveries.List(c.ctx(), formsvc.DeliveryQuery{
			AccountID: c.who.AccountID, WebhookID: c.ids[0], State: q.state, Page: q.page,
		})
	}, func(b []byte, x *formsvc.Delivery) ([]byte, formsvc.ID) {
		for i := range x.Log {
			x.Log[i].Answer = cut(x.Log[i].Answer, shortAnswer)
		}
		return x.AppendJSON(b), x.ID
	})
}

func (h *Handler) getDelivery(c *call) error {
	d, err := h.svc.Deliveries.Get(c.ctx(), c.deliveryKey())
	if err != nil {
		return err
	}
	c.out = d.AppendJSON(c.out)
	return c.sendRecord(contentTag(c.out))
}

// redeliver sends one delivery again.
func (h *Handler) redeliver(c *call) error {
	if err := c.body.Nothing(); err != nil {
		return err
	}
	d, err := once(c, func(svc *formsvc.Service) (formsvc.Delivery, error) {
		return svc.Deliveries.Redeliver(c.ctx(), c.deliveryKey())
	})
	if errors.Is(err, formsvc.ErrConflict) {
		return &wire.Problem{
			Status: http.StatusConflict, Code: "delivery_in_progress", Passing: true, Cause: err,
			Detail: "An attempt is in progress. Wait for its result, then retry.",
		}
	}
	if err != nil {
		return err
	}
	c.out = d.AppendJSON(c.out)
	c.setHeader("Etag", contentTag(c.out))
	return c.sendDone(http.StatusOK)
}

// redeliverFailed sends again all deliveries of a webhook that failed permanently since the given time.
func (h *Handler) redeliverFailed(c *call) error {
	since, err := c.body.Since()
	if err != nil {
		return err
	}
	n, err := once(c, func(svc *formsvc.Service) (int, error) {
		return svc.Deliveries.RedeliverFailed(c.ctx(), c.webhookKey(), since)
	})
	if err != nil {
		return err
	}
	c.out = append(strconv.AppendInt(append(c.out, `{"redelivered":`...), int64(n), 10), '}')
	return c.sendDone(http.StatusOK)
}

// cut returns at most limit bytes of the text, without splitting a character.
func cut(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	for at := limit; at > limit-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return text[:at]
		}
	}
	return text[:limit] // not UTF-8
}

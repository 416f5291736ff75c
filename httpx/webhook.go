package httpx

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

func (c *call) webhookKey() formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: c.who.AccountID, ID: c.ids[0]}
}

func (h *Handler) listWebhooks(c *call) error {
	return serveList(c, pageParams, func(q *listQuery) (formsvc.Page[formsvc.Webhook], error) {
		all, err := h.svc.Webhooks.List(c.ctx(), c.who.AccountID)
		return pageOfWebhooks(all, q.page), err
	}, func(b []byte, x *formsvc.Webhook) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

// pageOfWebhooks returns a page of an account's webhooks. They are oldest first, and so few that stores return them
// all.
func pageOfWebhooks(all []formsvc.Webhook, q formsvc.PageQuery) formsvc.Page[formsvc.Webhook] {
	page := formsvc.Page[formsvc.Webhook]{Total: int64(len(all))}
	rest := slices.Clone(all)
	if !q.Ascending {
		slices.Reverse(rest)
	}
	if q.After != "" {
		rest = slices.DeleteFunc(rest, func(w formsvc.Webhook) bool {
			return w.ID == q.After || (w.ID < q.After) == q.Ascending
		})
	}
	rest = rest[min(q.Offset, len(rest)):]
	page.More = len(rest) > q.Limit
	page.Items = rest[:min(q.Limit, len(rest))]
	return page
}

func (h *Handler) createWebhook(c *call) error {
	in, err := c.body.WebhookInput(false)
	if err != nil {
		return err
	}
	var created bool
	hook, err := once(c, func(svc *formsvc.Service) (hook formsvc.Webhook, err error) {
		hook, created, err = svc.Webhooks.Create(c.ctx(), c.who.AccountID, in)
		return hook, err
	})
	if exists, ok := errors.AsType[*formsvc.WebhookExistsError](err); ok {
		return &wire.Problem{
			Status: http.StatusConflict, Code: "webhook_exists", Cause: err,
			Detail: "Webhook " + string(exists.ID) + " has the same url, events and campaignUuid. Set its secret and headers with PUT, " +
				"or leave them out.",
		}
	}
	if err != nil {
		return err
	}
	c.setHeader("Location", h.location(c, hook.ID))
	if !created {
		return c.sendSecret(http.StatusOK, &hook, in.Secret, "")
	}
	return c.sendSecret(http.StatusCreated, &hook, in.Secret, hook.Secret)
}

// sendSecret sends a webhook with its secret, which is "" in the reply to a repeated request. given is the secret in the request.
func (c *call) sendSecret(status int, hook *formsvc.Webhook, given, secret string) error {
	c.setHeader("Etag", webhookTag(hook))
	c.out = appendWarnings(hook.AppendJSON(c.out), given)
	if secret != "" && hook.Address() == "" { // mail isn't signed
		c.out = append(c.out[:len(c.out)-1], `,"secret":`...)
		c.out = append(wire.AppendString(c.out, secret), '}')
	}
	return c.sendDone(status)
}

func (h *Handler) getWebhook(c *call) error {
	hook, err := h.svc.Webhooks.Get(c.ctx(), c.webhookKey())
	if err != nil {
		return err
	}
	c.out = hook.AppendJSON(c.out)
	return c.sendRecord(webhookTag(&hook))
}

func (h *Handler) replaceWebhook(c *call) error {
	in, err := c.body.WebhookInput(true)
	if err != nil {
		return err
	}
	in.IfVersion, err = c.ifVersion(true, (*Handler).webhookVersion)
	if err != nil {
		return err
	}
	hook, err := once(c, func(svc *formsvc.Service) (formsvc.Webhook, error) {
		return svc.Webhooks.Replace(c.ctx(), c.webhookKey(), in)
	})
	if err != nil {
		return err
	}
	c.out = appendWarnings(hook.AppendJSON(c.out), in.Secret)
	return c.sendRecord(webhookTag(&hook))
}

func (h *Handler) webhookVersion(c *call) (int64, error) {
	hook, err := h.svc.Webhooks.Get(c.ctx(), c.webhookKey())
	return hook.Version, err
}

func (h *Handler) deleteWebhook(c *call) error {
	return c.sendNoContent(h.service(c).Webhooks.Delete(c.ctx(), c.webhookKey()))
}

// testWebhook sends a test event.
func (h *Handler) testWebhook(c *call) error {
	if err := c.body.Nothing(); err != nil {
		return err
	}
	d, err := once(c, func(svc *formsvc.Service) (formsvc.Delivery, error) {
		return svc.Webhooks.Test(c.ctx(), c.webhookKey())
	})
	if err != nil {
		return err
	}
	c.out = d.AppendJSON(c.out)
	c.setHeader("Etag", contentTag(c.out))
	c.setHeader("Location", h.address(c, deliveries)+"/"+string(d.ID))
	return c.sendDone(http.StatusCreated)
}

// rotateWebhook gives a webhook a new secret.
func (h *Handler) rotateWebhook(c *call) error {
	rotation, err := c.body.Rotation()
	if err != nil {
		return err
	}
	hook, err := once(c, func(svc *formsvc.Service) (formsvc.Webhook, error) {
		return svc.Webhooks.Rotate(c.ctx(), c.webhookKey(), rotation)
	})
	if err != nil {
		return err
	}
	return c.sendSecret(http.StatusOK, &hook, rotation.Secret, hook.Secret)
}

// appendWarnings adds warnings about the secret of the request to a webhook. Without a secret there are none.
func appendWarnings(b []byte, secret string) []byte {
	warning := formsvc.SecretWarning(secret)
	if warning == "" {
		return b
	}
	b = append(b[:len(b)-1], `,"warnings":[`...)
	return append(wire.AppendString(b, warning), ']', '}')
}

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

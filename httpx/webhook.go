package httpx

import (
	"errors"
	"net/http"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

func (c *call) webhookKey() formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: c.who.AccountID, ID: c.ids[0]}
}

func (h *Handler) listWebhooks(c *call) error {
	q, sum, err := c.listQuery(pageParams)
	if err != nil {
		return err
	}
	all, err := h.svc.Webhooks.List(c.r.Context(), c.who.AccountID)
	if err != nil {
		return err
	}
	page := pageOfWebhooks(all, q.page)
	c.beginList()
	var last formsvc.ID
	for i := range page.Items {
		c.beginItem(i)
		c.out = appendWebhook(c.out, &page.Items[i], false)
		if page.More {
			last = page.Items[i].ID
		}
	}
	return c.endList(&q, page.Total, last, sum)
}

// pageOfWebhooks returns a page of an account's webhooks, which are oldest
// first and so few that stores return them all.
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
	if err := h.readJSON(c); err != nil {
		return err
	}
	in, err := c.body.webhookInput(false)
	if err != nil {
		return err
	}
	hook, created, err := h.svc.Webhooks.Create(c.r.Context(), c.who.AccountID, in)
	if errors.Is(err, formsvc.ErrConflict) {
		return &problem{
			status: http.StatusConflict, code: "webhook_exists", cause: err,
			detail: "Webhook " + string(hook.ID) + " has the same url, events and campaignUuid, but another secret or other " +
				"headers. Change that one, or leave secret and headers out.",
		}
	}
	if err != nil {
		return err
	}
	h.setLocation(c, hook.ID)
	if !created {
		return h.sendWebhook(c, http.StatusOK, noStore, &hook, false)
	}
	return h.sendWebhook(c, http.StatusCreated, noStore, &hook, true)
}

func (h *Handler) getWebhook(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	hook, err := h.svc.Webhooks.Get(c.r.Context(), c.webhookKey())
	if err != nil {
		return err
	}
	return h.sendWebhook(c, http.StatusOK, revalidate, &hook, false)
}

func (h *Handler) replaceWebhook(c *call) error {
	if err := h.readJSON(c); err != nil {
		return err
	}
	in, err := c.body.webhookInput(true)
	if err != nil {
		return err
	}
	cond, err := c.ifMatch(true)
	if err != nil {
		return err
	}
	version, err := cond.version(func() (int64, error) {
		hook, err := h.svc.Webhooks.Get(c.r.Context(), c.webhookKey())
		return hook.Version, err
	})
	if err != nil {
		return err
	}
	hook, err := h.svc.Webhooks.Replace(c.r.Context(), c.webhookKey(), in, version)
	if err != nil {
		return err
	}
	return h.sendWebhook(c, http.StatusOK, noStore, &hook, false)
}

// deleteWebhook answers 204 also when there is no such webhook, so that
// deleting again is harmless.
func (h *Handler) deleteWebhook(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	if err := c.noCondition(); err != nil {
		return err
	}
	err := h.svc.Webhooks.Delete(c.r.Context(), c.webhookKey())
	if err != nil && !errors.Is(err, formsvc.ErrNotFound) {
		return err
	}
	return c.sendNoContent()
}

// testWebhook sends a test event.
func (h *Handler) testWebhook(c *call) error {
	if err := h.readOptionalJSON(c); err != nil {
		return err
	}
	if err := c.body.nothing(); err != nil {
		return err
	}
	d, err := h.svc.Webhooks.Test(c.r.Context(), c.webhookKey())
	if err != nil {
		return err
	}
	c.setHeader("Location", h.address(c, deliveries)+"/"+string(d.ID))
	return c.sendDelivery(http.StatusCreated, noStore, &d)
}

// rotateWebhook gives a webhook a new secret.
func (h *Handler) rotateWebhook(c *call) error {
	if err := h.readOptionalJSON(c); err != nil {
		return err
	}
	rotation, err := c.body.rotation()
	if err != nil {
		return err
	}
	if err := c.noCondition(); err != nil {
		return err
	}
	hook, err := h.svc.Webhooks.Rotate(c.r.Context(), c.webhookKey(), rotation)
	if err != nil {
		return err
	}
	return h.sendWebhook(c, http.StatusOK, noStore, &hook, true)
}

// sendWebhook answers with the webhook, or 304 where a cache may ask whether it
// has it already.
func (h *Handler) sendWebhook(c *call, status int, cache []string, hook *formsvc.Webhook, shown bool) error {
	tag := webhookTag(hook)
	c.setHeader("Etag", tag)
	if c.route.Method == http.MethodGet && c.hasTag(tag) {
		return c.sendNotModified()
	}
	c.out = appendWebhook(c.out, hook, shown)
	return c.send(status, cache)
}

package storagetest

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// contents returns everything that lists of a store show of these accounts, by what it is.
func contents(ctx context.Context, s Store, accounts []formsvc.ID) (map[string]any, error) {
	c := collector{ctx: ctx, s: s, all: make(map[string]any)}
	for _, id := range accounts {
		a, err := s.Account(ctx, id)
		c.add("account", id, a, err)
		keys, err := s.Keys(ctx, id)
		c.add("keys", id, keys, err)
		campaigns := addList(&c, "campaigns", id, func(p formsvc.PageQuery) (formsvc.Page[formsvc.Campaign], error) {
			return s.Campaigns(ctx, formsvc.CampaignQuery{AccountID: id, Page: p})
		})
		for i := range campaigns {
			c.addCampaign(&campaigns[i])
		}
		hooks, err := s.Webhooks(ctx, id)
		c.add("webhooks", id, hooks, err)
		for i := range hooks {
			c.addWebhook(&hooks[i])
		}
		addList(&c, "notices", id, func(p formsvc.PageQuery) (formsvc.Page[formsvc.Notice], error) {
			return s.Notices(ctx, formsvc.NoticeQuery{AccountID: id, Page: p})
		})
		addList(&c, "audit", id, func(p formsvc.PageQuery) (formsvc.Page[formsvc.AuditEntry], error) {
			return s.Audit(ctx, formsvc.AuditQuery{AccountID: id, Page: p})
		})
		events, err := s.Events(ctx, formsvc.EventQuery{AccountID: id, Limit: formsvc.MaxLimit, Early: true})
		c.add("events", id, events.Items, err)
	}
	return c.all, c.err
}

// A collector collects contents until an error.
type collector struct {
	ctx context.Context
	s   Store
	all map[string]any
	err error
}

func (c *collector) add(what string, id formsvc.ID, value any, err error) {
	if c.err == nil {
		c.err = err
	}
	c.all[what+" of "+string(id)] = value
}

func (c *collector) addCampaign(campaign *formsvc.Campaign) {
	responses := addList(c, "responses", campaign.ID, func(p formsvc.PageQuery) (formsvc.Page[formsvc.Response], error) {
		return c.s.Responses(c.ctx, formsvc.ResponseQuery{AccountID: campaign.AccountID, CampaignID: campaign.ID, Page: p})
	})
	for i := range responses {
		k := keyOf(&responses[i])
		of := k.CampaignID + " " + k.ID
		addList(c, "files", of, func(p formsvc.PageQuery) (formsvc.Page[formsvc.File], error) {
			return c.s.Files(c.ctx, k, p)
		})
		addList(c, "comments", of, func(p formsvc.PageQuery) (formsvc.Page[formsvc.Comment], error) {
			return c.s.Comments(c.ctx, k, p)
		})
		addList(c, "signatures", of, func(p formsvc.PageQuery) (formsvc.Page[formsvc.Signature], error) {
			return c.s.Signatures(c.ctx, k, p)
		})
	}
}

func (c *collector) addWebhook(hook *formsvc.Webhook) {
	deliveries := addList(c, "deliveries", hook.ID, func(p formsvc.PageQuery) (formsvc.Page[formsvc.Delivery], error) {
		return c.s.Deliveries(c.ctx, formsvc.DeliveryQuery{AccountID: hook.AccountID, WebhookID: hook.ID, Page: p})
	})
	var events []string
	for i := range deliveries {
		deliveries[i] = specified(deliveries[i])
		events = append(events, string(deliveries[i].EventID))
	}
	payloads, err := c.s.Payloads(c.ctx, append(events, "nope", ""))
	c.add("payloads", hook.ID, payloads, err)
	waiting, err := c.s.Waiting(c.ctx, webhookKey(hook), formsvc.MaxCounted)
	c.add("waiting", hook.ID, waiting, err)
}

// specified returns the delivery without what isn't specified.
func specified(d formsvc.Delivery) formsvc.Delivery {
	if d.State != formsvc.DeliveryPending {
		d.DueAt = time.Time{}
	}
	return d
}

// addList adds a whole list. Its total must be right.
func addList[T any](c *collector, what string, of formsvc.ID, list func(formsvc.PageQuery) (formsvc.Page[T], error)) []T {
	items, total, err := collect(list)
	c.add(what, of, items, err)
	c.add("total of "+what, of, total-int64(len(items)), nil)
	return items
}

// collect returns a whole list, oldest first, and its total.
func collect[T any](list func(formsvc.PageQuery) (formsvc.Page[T], error)) (items []T, total int64, err error) {
	for more := true; more && err == nil; {
		var page formsvc.Page[T]
		page, err = list(formsvc.PageQuery{Limit: formsvc.MaxLimit, Offset: len(items), Ascending: true})
		items, total, more = append(items, page.Items...), page.Total, page.More && len(page.Items) > 0
	}
	return items, total, err
}

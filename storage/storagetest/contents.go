package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/formsvc/toolkit/formsvc"
)

// contents returns everything that lists of a store show of these accounts, by what it is.
func contents(ctx context.Context, s Store, accounts []formsvc.ID, after ...formsvc.ID) (map[string]any, error) {
	c := collector{ctx: ctx, s: s, all: make(map[string]any), after: after}
	for _, id := range accounts {
		c.add("account", id)(s.Account(ctx, id))
		c.add("keys", id)(s.Keys(ctx, id))
		campaigns := addList(&c, "campaigns", id, func(p formsvc.PageQuery) (formsvc.Page[formsvc.Campaign], error) {
			return s.Campaigns(ctx, formsvc.CampaignQuery{AccountID: id, Page: p})
		})
		for i := range campaigns {
			c.addCampaign(&campaigns[i])
		}
		for _, removed := range []bool{false, true} {
			members, err := s.Members(ctx, formsvc.MemberQuery{AccountID: id, Removed: removed})
			c.add(fmt.Sprint("members, removed ", removed), id)(members, err)
			for i := range members {
				c.add("sessions", members[i].ID)(s.Sessions(ctx, members[i].Key()))
			}
		}
		hooks, err := s.Webhooks(ctx, id)
		c.add("webhooks", id)(hooks, err)
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
		c.add("events", id)(events.Items, err)
	}
	return c.all, c.err
}

// A collector collects contents until an error.
type collector struct {
	ctx context.Context
	s   Store
	all map[string]any
	err error
	// after are positions in lists, which must return nothing that isn't in the list.
	after []formsvc.ID
}

func (c *collector) add(what string, id formsvc.ID) func(value any, err error) {
	return func(value any, err error) {
		if c.err == nil {
			c.err = err
		}
		c.all[what+" of "+string(id)] = value
	}
}

func (c *collector) addCampaign(campaign *formsvc.Campaign) {
	responses := addList(c, "responses", campaign.ID, func(p formsvc.PageQuery) (formsvc.Page[formsvc.Response], error) {
		return c.s.Responses(c.ctx, formsvc.ResponseQuery{AccountID: campaign.AccountID, CampaignID: campaign.ID, Page: p})
	})
	for i := range responses {
		k := responses[i].Key()
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
	c.add("payloads", hook.ID)(c.s.Payloads(c.ctx, append(events, "nope", "")))
	c.add("waiting", hook.ID)(c.s.Waiting(c.ctx, webhookKey(hook), formsvc.MaxCounted))
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
	c.add(what, of)(items, err)
	c.add("total of "+what, of)(total-int64(len(items)), nil)
	for _, after := range c.after {
		for _, ascending := range []bool{false, true} {
			page, err := list(formsvc.PageQuery{Limit: formsvc.MaxLimit, After: after, Ascending: ascending})
			for _, item := range page.Items {
				if !slices.ContainsFunc(items, func(own T) bool { return difference(what, own, item) == "" }) {
					err = fmt.Errorf("%s after %q have %+v, which is not in the list", what, after, item)
				}
			}
			c.add("page of "+what, of)(nil, err)
		}
	}
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

// difference describes how two values differ, or returns "". Nil and empty slices and maps are equal; times are equal only in
// the same location.
func difference(what string, got, want any) string {
	location := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) && a.Location().String() == b.Location().String() })
	answers := cmp.Comparer(func(a, b formsvc.Answers) bool { return a.JSON() == b.JSON() })
	bytesEqual := cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))
	if d := cmp.Diff(want, got, location, answers, bytesEqual, cmpopts.EquateEmpty()); d != "" {
		return what + " differs (-want +got):\n" + d
	}
	return ""
}

// spoil overwrites everything that a value shares with its copies: a store must not share it with its caller.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			switch e := v.Index(i); e.Kind() {
			case reflect.Uint8:
				e.SetUint('X')
			case reflect.String:
				e.SetString("spoiled")
			default:
				spoil(e)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			spoil(v.MapIndex(key))
			if e := v.MapIndex(key); e.Kind() == reflect.String {
				v.SetMapIndex(key, reflect.Zero(e.Type()))
			}
		}
	}
}

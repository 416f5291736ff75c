package storagetest

import (
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// refusedTexts returns texts that not every store can keep unchanged.
func refusedTexts() []string {
	return []string{
		"\x00", "a\x00b", "a\x00", "\xff", "a\x80", "a\xc3",
		"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ok \xf0\x9f\x98",
	}
}

// refuses fails the test unless each call fails with ErrInvalid for each text that can't be stored, and changes
// nothing.
func (w *world) refuses(calls map[string]func(text string) error) {
	w.Helper()
	before := w.snapshot()
	for name, call := range calls {
		for _, text := range refusedTexts() {
			w.wantError(fmt.Sprintf("%s of %+q", name, text), call(text), formsvc.ErrInvalid)
		}
	}
	w.unchanged("refusing texts", &before)
}

func testRefusedAccounts(w *world) {
	a := w.addAccount()
	create := func(change func(*formsvc.Account, *formsvc.Key)) error {
		account := w.newAccount()
		key := w.newKey(account.ID)
		change(&account, &key)
		return w.store.CreateAccount(w.ctx, account, []formsvc.Key{w.newKey(account.ID), key}, formsvc.Change{})
	}
	update := func(change func(*formsvc.Account)) error {
		_, err := w.store.UpdateAccount(w.ctx, a.ID, func(a *formsvc.Account) error {
			change(a)
			return nil
		})
		return err
	}
	keyMembers := map[string]func(*formsvc.Key, string){
		"name":       func(k *formsvc.Key, s string) { k.Name = s },
		"prefix":     func(k *formsvc.Key, s string) { k.Prefix = s },
		"permission": func(k *formsvc.Key, s string) { k.Permissions = append(k.Permissions, formsvc.Permission(s)) },
	}
	calls := map[string]func(string) error{
		"CreateAccount: name": func(s string) error {
			return create(func(a *formsvc.Account, _ *formsvc.Key) { a.Name = s })
		},
		"CreateAccount: contact": func(s string) error {
			return create(func(a *formsvc.Account, _ *formsvc.Key) { a.Contact = s })
		},
		"UpdateAccount: name":    func(s string) error { return update(func(a *formsvc.Account) { a.Name = s }) },
		"UpdateAccount: contact": func(s string) error { return update(func(a *formsvc.Account) { a.Contact = s }) },
	}
	for name, set := range keyMembers {
		calls["CreateAccount: key "+name] = func(s string) error {
			return create(func(_ *formsvc.Account, k *formsvc.Key) { set(k, s) })
		}
		calls["CreateKey: "+name] = func(s string) error {
			key := w.newKey(a.ID)
			set(&key, s)
			return w.store.CreateKey(w.ctx, key, formsvc.Change{})
		}
	}
	w.refuses(calls)
}

func testRefusedCampaigns(w *world) {
	a := w.addAccount()
	stored := w.addCampaign(a.ID)
	members := map[string]func(*formsvc.Campaign, string){
		"title":          func(c *formsvc.Campaign, s string) { c.Title = s },
		"description":    func(c *formsvc.Campaign, s string) { c.Description = s },
		"status":         func(c *formsvc.Campaign, s string) { c.Status = formsvc.CampaignStatus(s) },
		"module name":    func(c *formsvc.Campaign, s string) { c.Modules = []formsvc.Module{{Name: "a"}, {Name: s}} },
		"module label":   func(c *formsvc.Campaign, s string) { c.Modules = []formsvc.Module{{Name: "a", Label: s}} },
		"module type":    func(c *formsvc.Campaign, s string) { c.Modules = []formsvc.Module{{Type: formsvc.ModuleType(s)}} },
		"module option":  func(c *formsvc.Campaign, s string) { c.Modules = []formsvc.Module{{Options: []string{"a", s}}} },
		"metadata key":   func(c *formsvc.Campaign, s string) { c.Metadata = map[string]string{"a": "b", s: "x"} },
		"metadata value": func(c *formsvc.Campaign, s string) { c.Metadata = map[string]string{"a": "b", "x": s} },
	}
	calls := map[string]func(string) error{}
	for name, set := range members {
		calls["CreateCampaign: "+name] = func(s string) error {
			c := w.newCampaign(a.ID)
			set(&c, s)
			return w.store.CreateCampaign(w.ctx, c, formsvc.Change{})
		}
		calls["UpdateCampaign: "+name] = func(s string) error {
			_, err := w.store.UpdateCampaign(w.ctx, campaignKey(&stored), func(c *formsvc.Campaign) error {
				set(c, s)
				c.Version++
				return nil
			})
			return err
		}
	}
	w.refuses(calls)
}

func testRefusedResponses(w *world) {
	sc := w.addScene()
	stored, _ := w.addResponse(&sc.campaign)
	members := map[string]func(*formsvc.Response, string){
		"status":     func(r *formsvc.Response, s string) { r.Status = s },
		"email":      func(r *formsvc.Response, s string) { r.User.Email = s },
		"first name": func(r *formsvc.Response, s string) { r.User.FirstName = s },
		"last name":  func(r *formsvc.Response, s string) { r.User.LastName = s },
		"answers": func(r *formsvc.Response, s string) {
			r.Answers = formsvc.StoredAnswers(`{"q":{"value":["` + s + `"]}}`)
		},
	}
	calls := map[string]func(string) error{
		"CreateResponse: reference": func(s string) error {
			r := w.newResponse(&sc.campaign)
			r.Reference = s
			return w.create(r, w.newEvent(&r))
		},
	}
	for name, set := range members {
		calls["CreateResponse: "+name] = func(s string) error {
			r := w.newResponse(&sc.campaign)
			set(&r, s)
			return w.create(r, w.newEvent(&r))
		}
		calls["UpdateResponse: "+name] = func(s string) error {
			_, err := w.store.UpdateResponse(w.ctx, keyOf(&stored), func(r *formsvc.Response) (formsvc.Change, error) {
				set(r, s)
				r.Version++
				return formsvc.Change{Events: []formsvc.Event{w.newEvent(r)}}, nil
			})
			return err
		}
	}
	w.refuses(calls)
}

func testRefusedWebhooks(w *world) {
	sc := w.addScene()
	stored, _ := w.addResponse(&sc.campaign)
	events := func(r *formsvc.Response, text string) []formsvc.Event {
		list := []formsvc.Event{w.newEvent(r), w.newEvent(r)}
		list[1].Type = formsvc.EventType(text)
		return list
	}
	calls := map[string]func(string) error{
		"CreateResponse: event type": func(s string) error {
			r := w.newResponse(&sc.campaign)
			return w.create(r, events(&r, s)...)
		},
		"UpdateResponse: event type": func(s string) error {
			_, err := w.store.UpdateResponse(w.ctx, keyOf(&stored), func(r *formsvc.Response) (formsvc.Change, error) {
				r.Version++
				return formsvc.Change{Events: events(r, s)}, nil
			})
			return err
		},
		"CreateTest: event type": func(s string) error {
			e := w.newTestEvent(sc.account.ID)
			e.Type = formsvc.EventType(s)
			_, err := w.store.CreateTest(w.ctx, webhookKey(&sc.hook), e, nil)
			return err
		},
	}
	calls["CreateResponse: trace of an event"] = func(s string) error {
		r := w.newResponse(&sc.campaign)
		list := events(&r, string(webhook.ResponseCreated))
		list[1].TraceParent = s
		return w.create(r, list...)
	}
	for name, set := range map[string]func(*formsvc.Webhook, string){
		"url":      func(h *formsvc.Webhook, s string) { h.URL = s },
		"secret":   func(h *formsvc.Webhook, s string) { h.Secret = s },
		"previous": func(h *formsvc.Webhook, s string) { h.Previous = s },
		"event": func(h *formsvc.Webhook, s string) {
			h.Events = []formsvc.EventType{webhook.ResponseCreated, formsvc.EventType(s)}
		},
		"header name":  func(h *formsvc.Webhook, s string) { h.Headers = []formsvc.Header{{Name: "X-A", Value: "a"}, {Name: s}} },
		"header value": func(h *formsvc.Webhook, s string) { h.Headers = []formsvc.Header{{Name: "X-A", Value: s}} },
	} {
		calls["CreateWebhook: "+name] = func(s string) error {
			hook := w.newWebhook(sc.account.ID)
			set(&hook, s)
			_, _, err := w.store.CreateWebhook(w.ctx, hook, formsvc.MaxWebhooks, nil)
			return err
		}
		calls["UpdateWebhook: "+name] = func(s string) error {
			_, err := w.store.UpdateWebhook(w.ctx, webhookKey(&sc.hook), func(hook *formsvc.Webhook) (formsvc.Change, error) {
				set(hook, s)
				hook.Version++
				return formsvc.Change{}, nil
			})
			return err
		}
	}
	w.refuses(calls)
}

func testRefusedQueries(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	filtered := func(filter formsvc.ResponseFilter) error {
		_, err := w.store.Responses(w.ctx, formsvc.ResponseQuery{
			AccountID: sc.account.ID, CampaignID: sc.campaign.ID, Filter: filter,
		})
		return err
	}
	w.refuses(map[string]func(string) error{
		"AccountByName": func(s string) error {
			_, err := w.store.AccountByName(w.ctx, s)
			return err
		},
		"Responses: email":     func(s string) error { return filtered(formsvc.ResponseFilter{Email: s}) },
		"Responses: reference": func(s string) error { return filtered(formsvc.ResponseFilter{Reference: s}) },
		"Responses: status":    func(s string) error { return filtered(formsvc.ResponseFilter{Status: []string{"pending", s}}) },
	})
}

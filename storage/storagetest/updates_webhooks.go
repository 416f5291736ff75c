package storagetest

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// fullWebhook returns a webhook with all fields set.
func (w *world) fullWebhook(account, campaign formsvc.ID) formsvc.Webhook {
	hook := w.newWebhook(account)
	hook.Events, hook.CampaignID = webhook.EventTypes()[1:3], campaign
	hook.Previous, hook.PreviousUntil = "the secret before", nextDay()
	hook.Headers = []formsvc.Header{{Name: "X-B", Value: "2"}, {Name: "X-A", Value: "1"}, {Name: "Authorization", Value: "Bearer t"}}
	hook.Disabled, hook.Version, hook.UpdatedAt = true, 7, nextDay().Add(time.Hour)
	return hook
}

func testWebhookDecideSees(w *world) {
	sc := w.addScene()
	hook := w.fullWebhook(sc.account.ID, sc.campaign.ID)
	w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
	got, err := w.store.UpdateWebhook(w.ctx, webhookKey(&hook), func(got *formsvc.Webhook) (formsvc.Change, error) {
		w.same("webhook", *got, hook)
		got.Version++
		return formsvc.Change{}, nil
	})
	w.must("UpdateWebhook", err)
	hook.Version++
	w.same("webhook with a new version only", got, hook)
}

func testAccountDecideSees(w *world) {
	a := w.newAccount()
	a.Contact = "ada@example.com"
	w.must("CreateAccount", w.store.CreateAccount(w.ctx, a, nil, formsvc.Change{}))
	_, err := w.store.UpdateAccount(w.ctx, a.ID, func(got *formsvc.Account) error {
		w.same("account", *got, a)
		return nil
	})
	w.must("UpdateAccount", err)
}

func spoilWebhook(hook *formsvc.Webhook) {
	hook.Events[0], hook.Headers[0].Value = "spoiled", "spoiled"
	hook.Events = append(hook.Events, "spoiled")
	hook.Headers = append(hook.Headers, formsvc.Header{Name: "Spoiled"})
	hook.URL, hook.Secret, hook.Previous, hook.CampaignID = "spoiled", "spoiled", "spoiled", ""
	hook.PreviousUntil, hook.UpdatedAt, hook.Disabled = start(), start(), !hook.Disabled
}

func testWebhookDecideFails(w *world) {
	sc := w.addScene()
	hook := w.fullWebhook(sc.account.ID, sc.campaign.ID)
	w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
	before := w.snapshot()
	for _, want := range []error{errors.New("refused"), formsvc.ErrStale, &formsvc.TransitionError{From: "a", To: "b"}} {
		_, err := w.store.UpdateWebhook(w.ctx, webhookKey(&hook), func(hook *formsvc.Webhook) (formsvc.Change, error) {
			spoilWebhook(hook)
			hook.Version++
			return formsvc.Change{}, want
		})
		w.wantError("UpdateWebhook", err, want)
		_, err = w.store.UpdateAccount(w.ctx, sc.account.ID, func(a *formsvc.Account) error {
			a.Name, a.Contact = "spoiled", "spoiled"
			return want
		})
		w.wantError("UpdateAccount", err, want)
	}
	w.unchanged("updates whose functions failed", &before)
	_, err := w.store.AccountByName(w.ctx, "spoiled")
	w.wantError("AccountByName", err, formsvc.ErrNotFound)
}

func testWebhookDecideKeeps(w *world) {
	sc := w.addScene()
	hook := w.fullWebhook(sc.account.ID, sc.campaign.ID)
	w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
	before := w.snapshot()
	got, err := w.store.UpdateWebhook(w.ctx, webhookKey(&hook), func(hook *formsvc.Webhook) (formsvc.Change, error) {
		spoilWebhook(hook)
		return formsvc.Change{}, nil
	})
	w.must("UpdateWebhook", err)
	w.same("webhook as not updated", got, hook)
	w.unchanged("updates without a new version", &before)
}

// All fields can be set and cleared.
func testUpdateWebhook(w *world) {
	sc := w.addScene()
	want := w.newWebhook(sc.account.ID)
	w.must("CreateWebhook", w.subscribe(want, formsvc.MaxWebhooks))
	empty, full := want, w.fullWebhook(sc.account.ID, sc.campaign.ID)
	one := full
	one.Headers = []formsvc.Header{{Name: "X-A", Value: ""}}
	one.Secret, one.Previous, one.PreviousUntil = full.Previous, "", time.Time{}
	for _, from := range []formsvc.Webhook{full, empty, one, full} {
		want.URL, want.Events, want.CampaignID, want.Secret = from.URL, from.Events, from.CampaignID, from.Secret
		want.Previous, want.PreviousUntil, want.Headers = from.Previous, from.PreviousUntil, from.Headers
		want.Disabled, want.UpdatedAt = from.Disabled, from.UpdatedAt
		want.Version++
		in := want
		in.Events, in.Headers = slices.Clone(want.Events), slices.Clone(want.Headers)
		got, err := w.store.UpdateWebhook(w.ctx, webhookKey(&want), func(hook *formsvc.Webhook) (formsvc.Change, error) {
			*hook = in
			return formsvc.Change{}, nil
		})
		w.must("UpdateWebhook", err)
		w.same("webhook as updated", got, want)
		spoilWebhook(&formsvc.Webhook{Events: in.Events, Headers: append(in.Headers, formsvc.Header{})[:max(1, len(in.Headers))]})
		list, err := w.store.Webhooks(w.ctx, sc.account.ID)
		w.must("Webhooks", err)
		w.same("webhooks after update", list, []formsvc.Webhook{sc.hook, want})
		if len(got.Headers) > 0 {
			spoilWebhook(&got)
		}
		stored, err := w.store.Webhook(w.ctx, webhookKey(&want))
		w.must("Webhook", err)
		w.same("webhook after update", stored, want)
	}
}

func testUpdateListens(w *world) {
	sc := w.addScene()
	second := w.addCampaign(sc.account.ID)
	types := webhook.EventTypes()
	var want []formsvc.Event
	hook := sc.hook
	for _, edit := range []func(*formsvc.Webhook){
		func(*formsvc.Webhook) {},
		func(hook *formsvc.Webhook) { hook.Events = types[:1] },
		func(hook *formsvc.Webhook) { hook.Events = types[1:] },
		func(hook *formsvc.Webhook) { hook.CampaignID = second.ID },
		disable,
		func(hook *formsvc.Webhook) { hook.CampaignID = "" },
		enable,
	} {
		hook = w.change(&hook, edit)
		for _, c := range []*formsvc.Campaign{&sc.campaign, &second} {
			for _, e := range w.addEvents(c, types[:2]...) {
				if hook.Listens(&e) {
					want = append(want, e)
				}
			}
		}
	}
	if len(want) != 4+2+2+1+2 {
		w.Fatalf("the webhook listens to %d events", len(want))
	}
	all := sc.hook // subscribes to everything in want
	w.wantHeard([]formsvc.Webhook{all}, want)
}

func testUpdateAccount(w *world) {
	a, other := w.addAccount(w.newKey("")), w.addAccount()
	for _, x := range []struct{ name, contact string }{
		{a.Name, "ada@example.com"}, {"another name", "ada@example.com"}, {a.Name, ""}, {a.Name, ""}, {"another name", "x"},
	} {
		got, err := w.store.UpdateAccount(w.ctx, a.ID, func(a *formsvc.Account) error {
			a.Name, a.Contact = x.name, x.contact
			return nil
		})
		w.must("UpdateAccount", err)
		was := a.Name
		a.Name, a.Contact = x.name, x.contact
		w.same("account as updated", got, a)
		accounts, err := w.store.Accounts(w.ctx)
		w.must("Accounts", err)
		w.same("accounts", accounts, []formsvc.Account{a, other})
		got, err = w.store.AccountByName(w.ctx, x.name)
		w.must("AccountByName", err)
		w.same("account by name", got, a)
		if was != x.name {
			_, err = w.store.AccountByName(w.ctx, was)
			w.wantError("AccountByName of the name before", err, formsvc.ErrNotFound)
		}
	}
}

func incrementWebhook(w *world, store Store, hook *formsvc.Webhook) error {
	_, err := store.UpdateWebhook(w.ctx, webhookKey(hook), func(hook *formsvc.Webhook) (formsvc.Change, error) {
		n, _ := strconv.Atoi(hook.Previous)
		runtime.Gosched() // a store that interleaves here loses updates
		hook.Previous = strconv.Itoa(n + 1)
		hook.Version++
		return formsvc.Change{}, nil
	})
	return err
}

func (w *world) wantWebhookIncrements(store Store, hook *formsvc.Webhook) {
	w.Helper()
	got, err := store.Webhook(w.ctx, webhookKey(hook))
	w.must("Webhook", err)
	const n = incrementers * increments
	if got.Previous != strconv.Itoa(n) || got.Version != n+1 {
		w.Errorf("after %d increments the webhook says %q and has version %d", n, got.Previous, got.Version)
	}
}

func testWebhookIncrements(w *world) {
	sc := w.addScene()
	w.increment(func() error { return incrementWebhook(w, w.store, &sc.hook) })
	w.wantWebhookIncrements(w.store, &sc.hook)
}

func incrementAccount(w *world, store Store, id formsvc.ID) error {
	_, err := store.UpdateAccount(w.ctx, id, func(a *formsvc.Account) error {
		n, _ := strconv.Atoi(a.Contact)
		runtime.Gosched()
		a.Contact = strconv.Itoa(n + 1)
		return nil
	})
	return err
}

func (w *world) wantAccountIncrements(store Store, id formsvc.ID) {
	w.Helper()
	got, err := store.Account(w.ctx, id)
	w.must("Account", err)
	const n = incrementers * increments
	if got.Contact != strconv.Itoa(n) {
		w.Errorf("after %d increments the account says %q", n, got.Contact)
	}
}

func testAccountIncrements(w *world) {
	a := w.addAccount()
	w.increment(func() error { return incrementAccount(w, w.store, a.ID) })
	w.wantAccountIncrements(w.store, a.ID)
}

package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func conflictTests() []test {
	return []test{
		{"account name is unique", testAccountConflict},
		{"key hash is unique", testKeyConflict},
		{"reference is unique", testReferenceConflict},
		{"ID is unique", testIDConflict},
		{"one of many concurrent creates wins", testConflictRace},
		{"keys and campaigns have limits", testAccountLimits},
		{"concurrent creates keep the limits", testAccountLimitRace},
	}
}

func testAccountConflict(w *world) {
	taken := w.addAccount()
	before := w.snapshot()
	again := w.newAccount()
	again.Name = taken.Name
	key := w.newKey(again.ID)
	err := w.store.CreateAccount(w.ctx, again, []formsvc.Key{key}, formsvc.Change{})
	w.wantError("CreateAccount with a taken name", err, formsvc.ErrConflict)
	w.unchanged("CreateAccount with a taken name", &before)
	_, err = w.store.KeyByHash(w.ctx, key.Hash)
	w.wantError("KeyByHash of a key that failed with its account", err, formsvc.ErrNotFound)

	other := w.addAccount()
	before = w.snapshot()
	_, err = w.store.UpdateAccount(w.ctx, other.ID, func(a *formsvc.Account) error {
		a.Name, a.Contact = taken.Name, "not written"
		return nil
	})
	w.wantError("UpdateAccount with a taken name", err, formsvc.ErrConflict)
	w.unchanged("UpdateAccount with a taken name", &before)
}

func testAccountLimits(w *world) {
	mine, other := w.addAccount(), w.addAccount()
	limit := formsvc.Change{Limit: 2}
	first := w.newKey(mine.ID)
	w.must("CreateKey", w.store.CreateKey(w.ctx, first, limit))
	expired := w.newKey(mine.ID)
	expired.ExpiresAt = expired.CreatedAt.Add(time.Millisecond)
	w.must("CreateKey of a key that expires", w.store.CreateKey(w.ctx, expired, limit))
	third := w.newKey(mine.ID)
	third.CreatedAt = expired.ExpiresAt.Add(-time.Microsecond)
	w.wantError("CreateKey over the limit", w.store.CreateKey(w.ctx, third, limit), formsvc.ErrLimit)
	third.CreatedAt = expired.ExpiresAt
	w.must("CreateKey after one has expired", w.store.CreateKey(w.ctx, third, limit))
	fourth := w.newKey(mine.ID)
	fourth.CreatedAt = third.CreatedAt
	w.wantError("CreateKey over the limit", w.store.CreateKey(w.ctx, fourth, limit), formsvc.ErrLimit)
	w.must("RevokeKey", w.store.RevokeKey(w.ctx, mine.ID, first.ID, third.CreatedAt, formsvc.Change{}))
	w.must("CreateKey after one was revoked", w.store.CreateKey(w.ctx, fourth, limit))
	w.must("CreateKey without a limit", w.store.CreateKey(w.ctx, w.newKey(mine.ID), formsvc.Change{}))
	w.must("CreateKey of another account", w.store.CreateKey(w.ctx, w.newKey(other.ID), limit))
	for range 2 {
		w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, w.newCampaign(mine.ID), limit))
	}
	before := w.snapshot()
	w.wantError("CreateCampaign over the limit", w.store.CreateCampaign(w.ctx, w.newCampaign(mine.ID), limit), formsvc.ErrLimit)
	w.unchanged("CreateCampaign over the limit", &before)
	w.must("CreateCampaign of another account", w.store.CreateCampaign(w.ctx, w.newCampaign(other.ID), limit))
	w.must("CreateCampaign without a limit", w.store.CreateCampaign(w.ctx, w.newCampaign(mine.ID), formsvc.Change{}))
}

func testAccountLimitRace(w *world) {
	a := w.addAccount()
	const limit, tries = 5, 12
	won := w.race(tries, formsvc.ErrLimit, func() error { return w.store.CreateKey(w.ctx, w.newKey(a.ID), formsvc.Change{Limit: limit}) })
	keys, err := w.store.Keys(w.ctx, a.ID)
	if err != nil || won != limit || len(keys) != limit {
		w.Errorf("%d of %d keys were added, %d exist (%v), want %d", won, tries, len(keys), err, limit)
	}
	won = w.race(tries, formsvc.ErrLimit, func() error {
		return w.store.CreateCampaign(w.ctx, w.newCampaign(a.ID), formsvc.Change{Limit: limit})
	})
	page, err := w.store.Campaigns(w.ctx, formsvc.CampaignQuery{AccountID: a.ID, Page: formsvc.PageQuery{Limit: 100}})
	if err != nil || won != limit || len(page.Items) != limit || page.Total != limit {
		w.Errorf("%d of %d campaigns were added, %d exist (%v), want %d", won, tries, len(page.Items), err, limit)
	}
}

func testKeyConflict(w *world) {
	a, b := w.addAccount(), w.addAccount()
	taken := w.addKey(a.ID)
	before := w.snapshot()
	for _, account := range []formsvc.ID{a.ID, b.ID} {
		key := w.newKey(account)
		key.Hash = taken.Hash
		w.wantError("CreateKey with a taken hash", w.store.CreateKey(w.ctx, key, formsvc.Change{}), formsvc.ErrConflict)
	}
	account := w.newAccount()
	free, key := w.newKey(account.ID), w.newKey(account.ID)
	key.Hash = taken.Hash
	err := w.store.CreateAccount(w.ctx, account, []formsvc.Key{free, key}, formsvc.Change{})
	w.wantError("CreateAccount with a taken hash", err, formsvc.ErrConflict)
	w.unchanged("keys with a taken hash", &before)
	_, err = w.store.KeyByHash(w.ctx, free.Hash)
	w.wantError("KeyByHash of a key that failed with its account", err, formsvc.ErrNotFound)
}

func testReferenceConflict(w *world) {
	a, b := w.addScene(), w.addScene()
	second := w.addCampaign(a.account.ID)
	taken, _ := w.addResponse(&a.campaign)
	before := w.snapshot()
	for _, c := range []*formsvc.Campaign{&a.campaign, &second} {
		r := w.newResponse(c)
		r.Reference = taken.Reference
		w.wantError("CreateResponse with a taken reference", w.create(r, w.newEvent(&r)), formsvc.ErrConflict)
	}
	w.unchanged("CreateResponse with a taken reference", &before)
	free := w.newResponse(&b.campaign)
	free.Reference = taken.Reference
	w.must("CreateResponse with another account's reference", w.create(free))
}

// The error for a taken ID isn't specified, since IDs don't collide by chance.
func testIDConflict(w *world) {
	a := w.addAccount(w.newKey(""))
	c := w.addCampaign(a.ID)
	hook := w.addWebhook(a.ID)
	r, e := w.addResponse(&c)
	before := w.snapshot()

	twice := w.newTestEvent(a.ID)
	twice.ID = e.ID
	_, testErr := w.store.CreateTest(w.ctx, webhookKey(&hook), twice, nil)
	account, key, campaign := w.newAccount(), w.newKey(a.ID), w.newCampaign(a.ID)
	webhook, response := w.newWebhook(a.ID), w.newResponse(&c)
	event := w.newEvent(&response)
	account.ID, key.ID, campaign.ID, webhook.ID, response.ID = a.ID, before.Keys[a.ID][0].ID, c.ID, hook.ID, r.ID
	for name, err := range map[string]error{
		"CreateAccount":  w.store.CreateAccount(w.ctx, account, nil, formsvc.Change{}),
		"CreateKey":      w.store.CreateKey(w.ctx, key, formsvc.Change{}),
		"CreateCampaign": w.store.CreateCampaign(w.ctx, campaign, formsvc.Change{}),
		"CreateWebhook":  w.subscribe(webhook, formsvc.MaxWebhooks),
		"CreateResponse": w.create(response, event),
		"CreateTest":     testErr,
	} {
		if err == nil {
			w.Errorf("%s with a taken ID succeeded", name)
		}
	}
	w.unchanged("adding records with a taken ID", &before)
	w.noEvents("CreateResponse with a taken ID", event)
}

func testConflictRace(w *world) {
	sc := w.addScene()
	taken := w.newResponse(&sc.campaign)
	account, key := w.newAccount(), w.newKey(sc.account.ID)
	for name, call := range map[string]func() error{
		"CreateAccount": func() error {
			a := w.newAccount()
			a.Name = account.Name
			return w.store.CreateAccount(w.ctx, a, nil, formsvc.Change{})
		},
		"UpdateAccount": func() error {
			other := w.newAccount()
			if err := w.store.CreateAccount(w.ctx, other, nil, formsvc.Change{}); err != nil {
				return fmt.Errorf("CreateAccount: %v", err) //nolint:errorlint // it must not count as a conflict
			}
			_, err := w.store.UpdateAccount(w.ctx, other.ID, func(a *formsvc.Account) error {
				a.Name = "wanted by many"
				return nil
			})
			return err
		},
		"CreateKey": func() error {
			k := w.newKey(sc.account.ID)
			k.Hash = key.Hash
			return w.store.CreateKey(w.ctx, k, formsvc.Change{})
		},
		"CreateResponse": func() error {
			r := w.newResponse(&sc.campaign)
			r.Reference = taken.Reference
			return w.create(r, w.newEvent(&r))
		},
	} {
		if won := w.race(16, formsvc.ErrConflict, call); won != 1 {
			w.Errorf("%s: %d of 16 succeeded, want 1", name, won)
		}
	}
	got, err := w.store.Campaign(w.ctx, campaignKey(&sc.campaign))
	w.must("Campaign", err)
	if n := len(w.deliveries(&sc.hook)); got.ResponseCount != 1 || n != 1 {
		w.Errorf("after one of 16 succeeded: %d responses are counted and %d deliveries wait", got.ResponseCount, n)
	}
}

// race makes the call n times concurrently and returns how many succeeded. The others must fail with that error.
func (w *world) race(n int, want error, call func() error) int {
	w.Helper()
	results := make([]error, n)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = call() })
	}
	all.Wait()
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, want):
			w.Errorf("error %v, want %v", err, want)
		}
	}
	return won
}

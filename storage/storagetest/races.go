package storagetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/formsvc/toolkit/formsvc"
)

// wantIncrements updates records concurrently.
func (w *world) wantIncrements(stores []Store) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	for _, step := range []func(Store) error{
		func(s Store) error { return incrementResponse(w, s, &r) },
		func(s Store) error { return incrementCampaign(w, s, &sc.campaign) },
		func(s Store) error { return incrementWebhook(w, s, &sc.hook) },
		func(s Store) error { return incrementAccount(w, s, sc.account.ID) },
	} {
		w.increment(stores, step)
	}
	for _, store := range stores {
		w.wantWebhookIncrements(store, &sc.hook)
		w.wantAccountIncrements(store, sc.account.ID)
		w.wantResponseIncrements(store, &r, &sc.hook)
		w.wantCampaignIncrements(store, &sc.campaign)
	}
}

// wantLimits adds concurrently what only some calls may add.
func (w *world) wantLimits(stores []Store) {
	const limit = 5
	a := w.addAccount()
	c := w.addCampaign(a.ID)
	taken, name, hash := w.newResponse(&c).Reference, w.newAccount().Name, keyHash(a.ID)
	limited := formsvc.Change{Limit: limit}
	for what, x := range map[string]struct {
		want int
		err  error
		call func(s Store) error
	}{
		"webhooks": {limit, formsvc.ErrLimit, func(s Store) error {
			_, _, err := s.CreateWebhook(w.ctx, w.newWebhook(a.ID), limit, nil)
			return err
		}},
		"keys":      {limit, formsvc.ErrLimit, func(s Store) error { return s.CreateKey(w.ctx, w.newKey(a.ID), limited) }},
		"campaigns": {limit - 1, formsvc.ErrLimit, func(s Store) error { return s.CreateCampaign(w.ctx, w.newCampaign(a.ID), limited) }},
		"references": {1, formsvc.ErrConflict, func(s Store) error {
			r := w.newResponse(&c)
			r.Reference = taken
			return s.CreateResponse(w.ctx, r, 1, formsvc.Change{})
		}},
		"names": {1, formsvc.ErrConflict, func(s Store) error {
			other := w.newAccount()
			other.Name = name
			return s.CreateAccount(w.ctx, other, nil, formsvc.Change{})
		}},
		"hashes": {1, formsvc.ErrConflict, func(s Store) error {
			key := w.newKey(w.addAccount().ID)
			key.Hash = hash
			return s.CreateKey(w.ctx, key, formsvc.Change{})
		}},
	} {
		if won := w.race(24, x.err, func(i int) error { return x.call(stores[i%len(stores)]) }); won != x.want {
			w.Errorf("%s: %d of 24 calls succeeded, want %d", what, won, x.want)
		}
	}
	same := w.newWebhook(w.addAccount().ID)
	list, created := make([]formsvc.Webhook, 16), make(map[formsvc.ID]bool)
	w.race(len(list), nil, func(i int) error {
		mine := same
		mine.ID = w.nextID()
		var err error
		list[i], _, err = stores[i%len(stores)].CreateWebhook(w.ctx, mine, limit, nil)
		return err
	})
	for i := range list {
		created[list[i].ID] = true
	}
	if len(created) != 1 {
		w.Errorf("%d webhooks of one subscription", len(created))
	}
}

// wantOneOfMany makes concurrent calls of several methods with one key.
func (w *world) wantOneOfMany(stores []Store) {
	w.Helper()
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	for round := range 4 {
		if won := w.race(64, formsvc.ErrRepeated, func(i int) error {
			s := stores[i%len(stores)]
			record := w.fullRecord(sc.account.ID, fmt.Sprint("round ", round))
			change := formsvc.Change{Idempotency: &record}
			switch (i / len(stores)) % (round + 1) {
			case 1:
				return s.CreateFile(w.ctx, w.newFile(&r), deciding[*formsvc.Response](change))
			case 2:
				return s.CreateCampaign(w.ctx, w.newCampaign(sc.account.ID), change)
			case 3:
				return s.Note(w.ctx, change)
			}
			fresh := w.newResponse(&sc.campaign)
			change.Events = []formsvc.Event{w.newEvent(&fresh)}
			return s.CreateResponse(w.ctx, fresh, 1, change)
		}); won != 1 {
			w.Errorf("%d calls with one key succeeded, want 1", won)
		}
	}
	w.wantCount(&sc.campaign, &sc.hook, int64(len(w.responses(&sc.campaign))))
}

// race makes the call n times concurrently and returns how many succeeded. The others must fail with that error.
func (w *world) race(n int, want error, call func(i int) error) int {
	w.Helper()
	results := make([]error, n)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = call(i) })
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

// increment has many goroutines call step at once.
func (w *world) increment(stores []Store, step func(Store) error) {
	w.Helper()
	var all sync.WaitGroup
	for i := range incrementers {
		all.Go(func() {
			for range increments {
				if err := step(stores[i%len(stores)]); err != nil {
					w.Errorf("increment: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (w *world) wantCampaignIncrements(store Store, c *formsvc.Campaign) {
	w.Helper()
	got, err := store.Campaign(w.ctx, campaignKey(c))
	w.must("Campaign", err)
	const n = incrementers * increments
	if got.Description != strconv.Itoa(n) || got.Version != n+1 {
		w.Errorf("after %d increments the campaign says %q and has version %d", n, got.Description, got.Version)
	}
}

// wantResponseIncrements also checks that each increment raised exactly the event of the function's last run.
func (w *world) wantResponseIncrements(store Store, r *formsvc.Response, hook *formsvc.Webhook) {
	w.Helper()
	const n = incrementers * increments
	got, err := store.Response(w.ctx, keyOf(r))
	w.must("Response", err)
	if got.User.LastName != strconv.Itoa(n) || got.Version != n+1 {
		w.Errorf("after %d increments the response says %q and has version %d", n, got.User.LastName, got.Version)
	}
	var events []string
	for _, d := range w.deliveries(hook) {
		events = append(events, string(d.EventID))
	}
	payloads, err := store.Payloads(w.ctx, events)
	w.must("Payloads", err)
	seen := make(map[string]bool)
	for _, payload := range payloads {
		seen[string(payload.Body)] = true
	}
	for i := range n {
		if !seen[strconv.Itoa(i+1)] {
			w.Errorf("increment %d has no event", i+1)
		}
	}
	if len(events) != n+1 {
		w.Errorf("%d deliveries of %d events", len(events), n+1)
	}
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

func (w *world) wantAccountIncrements(store Store, id formsvc.ID) {
	w.Helper()
	got, err := store.Account(w.ctx, id)
	w.must("Account", err)
	const n = incrementers * increments
	if got.Contact != strconv.Itoa(n) {
		w.Errorf("after %d increments the account says %q", n, got.Contact)
	}
}

// redeemTogether redeems the same link concurrently.
func (w *world) redeemTogether(stores []Store) {
	w.Helper()
	a := w.addAccount()
	var turn atomic.Int64
	for range 10 {
		link := w.addLink(a.ID)
		sessions := make([]formsvc.Session, 8)
		for i := range sessions {
			sessions[i] = w.newSession(a.ID)
		}
		var next, redeemed atomic.Int64
		if won := w.race(len(sessions), formsvc.ErrNotFound, func(int) error {
			mine := next.Add(1) - 1
			_, err := stores[turn.Add(1)%int64(len(stores))].RedeemLink(w.ctx, link.Hash,
				func(*formsvc.Link) (formsvc.Session, formsvc.Change, error) {
					return sessions[mine], formsvc.Change{}, nil
				})
			if err == nil {
				redeemed.Store(mine)
			}
			return err
		}); won != 1 {
			w.Errorf("a link was redeemed %d times", won)
		}
		for i, session := range sessions {
			if int64(i) == redeemed.Load() {
				w.wantSessions("RedeemLink by many", session)
			} else {
				w.wantNoSessions("RedeemLink by many", session)
			}
		}
	}
}

// wantSessions fails the test unless these sessions exist.
func (w *world) wantSessions(what string, sessions ...formsvc.Session) {
	w.Helper()
	for _, want := range sessions {
		got, err := w.store.SessionByHash(w.ctx, want.Hash)
		w.must("SessionByHash after "+what, err)
		w.same("session after "+what, got, want)
	}
}

// Sizes of the increment tests.
const (
	incrementers = 8
	increments   = 25
)

// allFiles returns the files of all accounts.
func (w *world) allFiles() []formsvc.File {
	w.Helper()
	page, err := w.store.Files(w.ctx, formsvc.FileQuery{AllAccounts: true, Page: formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true}})
	w.must("Files", err)
	return page.Items
}

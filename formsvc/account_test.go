package formsvc_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

func TestAccountNames(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name string
		want []string
	}{
		{"x", nil},
		{strings.Repeat("🌍", 100), nil},
		{"", []string{"/name required"}},
		{" \t\u00a0", []string{"/name required"}},
		{strings.Repeat("é", 101), []string{"/name too_long"}},
		{"a\x00b", []string{"/name nul_not_allowed"}},
		{"a\xff", []string{"/name invalid_utf8"}},
	} {
		a, err := w.svc.Accounts.Create(w.ctx, c.name)
		wantFaults(t, err, c.want...)
		if c.want != nil {
			continue
		}
		byName, err := w.svc.Accounts.ByName(w.ctx, c.name)
		got, err2 := w.svc.Accounts.Get(w.ctx, a.ID)
		if a.Name != c.name || !a.CreatedAt.Equal(start()) || byName != a || got != a || err != nil || err2 != nil {
			t.Errorf("made %+v, found %+v, %v, and %+v, %v", a, byName, err, got, err2)
		}
	}
	wantError(t, failure(w.svc.Accounts.Get(w.ctx, someID)), formsvc.ErrNotFound)
	for _, name := range []string{"second", "First", "first ", "", "a\x00", "\xff"} {
		wantError(t, failure(w.svc.Accounts.ByName(w.ctx, name)), formsvc.ErrNotFound)
	}
}

// An account and its first key exist both, or neither does.
func TestCreateWithKeyIsAtomic(t *testing.T) {
	w := newWorld(t)
	input := formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()}
	a, key, err := w.svc.Accounts.CreateWithKey(w.ctx, "second", input)
	noError(t, err)
	if p, err := w.svc.Keys.Authenticate(w.ctx, key.Value); err != nil || p.AccountID != a.ID {
		t.Errorf("the first key gives %+v, %v", p, err)
	}

	a, key, err = w.svc.Accounts.CreateWithKey(w.ctx, "second", input)
	wantError(t, err, formsvc.ErrConflict)
	if a.ID != "" || key.Value != "" {
		t.Error("a failed call returns something")
	}

	_, _, err = w.svc.Accounts.CreateWithKey(w.ctx, "third", formsvc.KeyInput{Name: "k"})
	wantFaults(t, err, "/permissions required")
	_, _, err = w.svc.Accounts.CreateWithKey(w.ctx, "", input)
	wantFaults(t, err, "/name required")
	if list, err := w.svc.Accounts.List(w.ctx); err != nil || len(list) != 2 {
		t.Errorf("there are the accounts %+v, %v", list, err)
	}
}

// Concurrent callers get the same account, and only the first call asks the store.
func TestEnsureCreatesAnAccountOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := []*formsvc.Service{w.svc, w.neighbour(), w.neighbour()}
	ids := make([]formsvc.ID, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			id, err := nodes[i%3].Accounts.Ensure(w.ctx, "tenant 7")
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	all.Wait()
	account := must(w.svc.Accounts.ByName(w.ctx, "tenant 7"))
	w.store.disturb(nil)
	ids = append(ids, must(w.svc.Accounts.Ensure(w.ctx, "tenant 7")))
	equal(t, w.store.count("AccountByName"), 0, "the store was asked %d times for an account that is known")
	for _, id := range ids {
		equal(t, id, account.ID, "an account %s for everybody")
	}
	wantFaults(t, failure(w.svc.Accounts.Ensure(w.ctx, "")), "/name required")

	// Another caller creates the account between the lookup and the creation.
	w.store.disturb(failFirst("AccountByName", 1, formsvc.ErrNotFound))
	equal(t, must(w.svc.Accounts.Ensure(w.ctx, "first")), w.account, "account %s")
}

// Nothing is cached that may be rolled back.
func TestEnsureCachesNothingInATransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, svc := range []*formsvc.Service{w.svc.With(memory.New()), w.svc, w.svc.With(memory.New())} {
		id := must(svc.Accounts.Ensure(w.ctx, "tenant 7"))
		must(svc.Accounts.Get(w.ctx, id)) // otherwise it is an account of another store
	}
}

// A deletion that fails at any call to the store is finished by another one. Nothing is left, and other accounts stay.
func TestDeleteAccount(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		g := newGuestbook(t)
		other, key, err := g.svc.Accounts.CreateWithKey(g.ctx, "other", formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
		noError(t, err)
		calls := 0
		g.store.disturb(func(string, int) error {
			if calls++; calls == n {
				return errFrail
			}
			return nil
		})
		receipt, err := g.svc.Accounts.Delete(g.ctx, g.account)
		g.store.disturb(nil)
		done := err == nil
		if !done {
			wantError(t, err, errFrail)
			if !receipt.FinishedAt.IsZero() {
				t.Errorf("call %d failed, and the receipt has an end", n)
			}
			receipt = must(g.svc.Accounts.Delete(g.ctx, g.account))
		}
		if receipt.FinishedAt.IsZero() || len(g.shelf.keys(t)) != 0 || done && (receipt.Responses != 7 || receipt.Files != 3) {
			t.Errorf("the receipt is %+v", receipt)
		}
		wantError(t, failure(g.svc.Accounts.Delete(g.ctx, g.account)), formsvc.ErrNotFound)
		if list := must(g.svc.Accounts.List(g.ctx)); len(list) != 1 || list[0] != other {
			t.Errorf("the accounts are %+v", list)
		}
		must(g.svc.Keys.Authenticate(g.ctx, key.Value))
		if done {
			return
		}
	}
}

// Caches drop a deleted account at once, and those of another node after a while.
func TestDeletedAccountIsNotCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, node := w.campaign(), w.neighbour()
	key := must(w.svc.Keys.Create(w.ctx, w.account, formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()}))
	for _, svc := range []*formsvc.Service{w.svc, node} {
		who := must(svc.Keys.Authenticate(w.ctx, key.Value))
		must(svc.Accounts.Ensure(w.ctx, "first"))
		must(svc.Quotas.Take(w.ctx, who))
	}
	w.submitted(&c)
	must(w.svc.Accounts.Delete(w.ctx, w.account))
	wantError(t, failure(w.svc.Keys.Authenticate(w.ctx, key.Value)), formsvc.ErrUnauthenticated)
	wantError(t, failure(w.submit(&c)), formsvc.ErrNotFound)
	if use := must(w.svc.Quotas.Use(w.ctx, key.ID, time.Time{})); len(use) != 0 {
		t.Errorf("counts are left: %v", use)
	}
	fresh := must(w.svc.Accounts.Ensure(w.ctx, "first"))
	w.clock.add(formsvc.KeyCacheTTL)
	if id := must(node.Accounts.Ensure(w.ctx, "first")); id != fresh || fresh == w.account {
		t.Errorf("another node has the account %s, want %s", id, fresh)
	}
	wantError(t, failure(node.Keys.Authenticate(w.ctx, key.Value)), formsvc.ErrUnauthenticated)
}

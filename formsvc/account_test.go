package formsvc_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

func TestAccountNames(t *testing.T) {
	for _, c := range []struct {
		label, name string
		want        []string
	}{
		{"one character", "x", nil},
		{"100 characters", strings.Repeat("x", 100), nil},
		{"100 characters of four bytes", strings.Repeat("🌍", 100), nil},
		{"empty", "", []string{"/name required"}},
		{"blank", " \t\u00a0", []string{"/name required"}},
		{"101 characters", strings.Repeat("é", 101), []string{"/name too_long"}},
		{"NUL", "a\x00b", []string{"/name nul_not_allowed"}},
		{"not UTF-8", "a\xff", []string{"/name invalid_utf8"}},
	} {
		t.Run(c.label, func(t *testing.T) {
			w := newWorld(t)
			a, err := w.svc.Accounts.Create(w.ctx, c.name)
			wantFaults(t, err, c.want...)
			if c.want != nil {
				return
			}
			if a.Name != c.name || !a.CreatedAt.Equal(start()) {
				t.Errorf("made %+v", a)
			}
			if got, err := w.svc.Accounts.ByName(w.ctx, c.name); err != nil || got != a {
				t.Errorf("ByName returns %+v, %v", got, err)
			}
			if got, err := w.svc.Accounts.Get(w.ctx, a.ID); err != nil || got != a {
				t.Errorf("Get returns %+v, %v", got, err)
			}
		})
	}
}

func TestAccountNotFound(t *testing.T) {
	w := newWorld(t)
	_, err := w.svc.Accounts.Get(w.ctx, formsvc.FloorID(start()))
	wantError(t, err, formsvc.ErrNotFound)
	for _, name := range []string{"second", "First", "first ", "", "a\x00", "\xff"} {
		_, err := w.svc.Accounts.ByName(w.ctx, name)
		wantError(t, err, formsvc.ErrNotFound)
	}
}

func TestSetContact(t *testing.T) {
	w := newWorld(t)
	_, err := w.svc.Accounts.SetContact(w.ctx, w.account, "nobody")
	wantFaults(t, err, "/contact invalid_email")
	for _, email := range []string{"ada@example.com", ""} {
		if a, err := w.svc.Accounts.SetContact(w.ctx, w.account, email); err != nil || a.Contact != email {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

// An account and its first key exist both, or neither does.
func TestCreateWithKeyIsAtomic(t *testing.T) {
	w := newWorld(t)
	input := formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()}
	a, value, err := w.svc.Accounts.CreateWithKey(w.ctx, "second", input)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := w.svc.Keys.Authenticate(w.ctx, value); err != nil || p.AccountID != a.ID {
		t.Errorf("the first key gives %+v, %v", p, err)
	}

	a, value, err = w.svc.Accounts.CreateWithKey(w.ctx, "second", input)
	wantError(t, err, formsvc.ErrConflict)
	if a.ID != "" || value != "" {
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

// TestEnsureCreatesAnAccountOnce checks that concurrent callers get the same account, and that only
// the first call asks the store.
func TestEnsureCreatesAnAccountOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := &accountCounter{Store: w.store.Store}
	svc, err := formsvc.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := w.neighbour()
	ids := make([]formsvc.ID, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			id, err := []*formsvc.Service{w.svc, svc, other}[i%3].Accounts.Ensure(w.ctx, "tenant 7")
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	all.Wait()
	account, err := w.svc.Accounts.ByName(w.ctx, "tenant 7")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if id != account.ID {
			t.Errorf("an account %s, want %s for everybody", id, account.ID)
		}
	}
	asked := store.asked.Load()
	for range 3 {
		if id, err := svc.Accounts.Ensure(w.ctx, "tenant 7"); err != nil || id != account.ID {
			t.Errorf("again: %s, %v", id, err)
		}
	}
	if again := store.asked.Load() - asked; again != 0 {
		t.Errorf("the store was asked %d times for an account that is known", again)
	}
	_, err = svc.Accounts.Ensure(w.ctx, "")
	wantFaults(t, err, "/name required")
}

// TestEnsureWhenAnotherCallerCreatesTheAccount creates the account between the lookup and the
// creation.
func TestEnsureWhenAnotherCallerCreatesTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	svc, err := formsvc.New(&accountCounter{Store: w.store.Store, blind: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := svc.Accounts.Ensure(w.ctx, "first"); err != nil || id != w.account {
		t.Errorf("account %s (%v), want %s", id, err, w.account)
	}
}

// TestEnsureCachesNothingInATransaction checks that nothing is cached that may be rolled back.
func TestEnsureCachesNothingInATransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.svc.With(memory.New()).Accounts.Ensure(w.ctx, "tenant 7"); err != nil {
		t.Fatal(err)
	}
	id, err := w.svc.Accounts.Ensure(w.ctx, "tenant 7")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.Accounts.Get(w.ctx, id); err != nil {
		t.Errorf("an account of another store: %v", err)
	}
	other := w.svc.With(memory.New())
	if id, err = other.Accounts.Ensure(w.ctx, "tenant 7"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Accounts.Get(w.ctx, id); err != nil {
		t.Errorf("the account of one store in another: %v", err)
	}
}

// An accountCounter counts lookups of accounts by name.
type accountCounter struct {
	formsvc.Store
	blind bool // the first lookup finds nothing
	asked atomic.Int64
}

func (s *accountCounter) AccountByName(ctx context.Context, name string) (formsvc.Account, error) {
	if s.asked.Add(1) == 1 && s.blind {
		return formsvc.Account{}, formsvc.ErrNotFound
	}
	return s.Store.AccountByName(ctx, name)
}

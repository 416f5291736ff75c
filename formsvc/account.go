package formsvc

import (
	"context"
	"errors"
	"time"
)

// An Account owns campaigns, responses, keys and webhooks. Accounts can't see each other's data.
type Account struct {
	ID        ID
	Name      string // unique, 1 to 100 characters
	Contact   string // the e-mail address that is notified of webhooks that fail; may be ""
	CreatedAt time.Time
}

// Accounts creates, lists and deletes accounts. It is safe for concurrent use.
type Accounts struct{ s *core }

// Create creates an account. It fails with [ErrConflict] if the name is taken and with a
// *[ValidationError] if it is empty or too long.
func (a Accounts) Create(ctx context.Context, name string) (Account, error) {
	account, _, err := a.create(ctx, name, nil)
	return account, err
}

// CreateWithKey creates an account and its first key in one atomic write: afterwards both exist, or
// neither. It fails as Create and [Keys.Create] do.
func (a Accounts) CreateWithKey(ctx context.Context, name string, in KeyInput) (account Account, key NewKey, err error) {
	return a.create(ctx, name, &in)
}

func (a Accounts) create(ctx context.Context, name string, in *KeyInput) (_ Account, key NewKey, err error) {
	defer wrap(&err, "create account")
	var v ValidationError
	v.checkTitle("/name", name, 100)
	if err := v.err(); err != nil {
		return Account{}, NewKey{}, err
	}
	now := a.s.now()
	account := Account{ID: a.s.NewID(now), Name: name, CreatedAt: now}
	var (
		keys    []Key
		details map[string]string
	)
	if in != nil {
		if key, err = a.s.makeKey(account.ID, *in); err != nil {
			return Account{}, NewKey{}, err
		}
		keys = []Key{key.Key}
		details = key.auditDetails()
		details["key"] = string(key.ID)
	}
	if err := a.s.store.CreateAccount(ctx, account, keys, Change{Audit: a.s.audit(account.ID, AuditAccountCreated, account.ID, details)}); err != nil {
		return Account{}, NewKey{}, err
	}
	return account, key, nil
}

// Ensure returns the identifier of the account with that name, and creates the account if there is none. Concurrent
// calls, on any node, return the same identifier. It fails like Create. A program with its own tenants names an account
// after each tenant's permanent identifier and calls Ensure with every request. The identifier is cached for
// [KeyCacheTTL], in which another node may delete the account.
func (a Accounts) Ensure(ctx context.Context, name string) (ID, error) {
	now := a.s.now()
	if known, ok := a.s.ids.get(name); ok && !now.Before(known.at) && now.Sub(known.at) < KeyCacheTTL {
		return known.id, nil
	}
	account, err := a.ByName(ctx, name)
	if errors.Is(err, ErrNotFound) {
		account, err = a.Create(ctx, name)
	}
	if errors.Is(err, ErrConflict) { // another caller created it meanwhile
		account, err = a.ByName(ctx, name)
	}
	if err != nil {
		return "", err
	}
	if !a.s.bound { // what a transaction reads may be rolled back
		a.s.ids.put(name, cachedID{account.ID, now}, 1)
	}
	return account.ID, nil
}

// A cachedID is the identifier of an account at a time.
type cachedID struct {
	id ID
	at time.Time
}

// Delete removes an account with everything that it has: first its keys, sessions and webhooks, then campaigns,
// responses, files, events and the rest, and at last the audit trail and the name. It raises no events. Writes of
// other callers fail with [ErrNotFound], or are removed. Other nodes may accept the keys for [KeyCacheTTL].
// Request counts of a host's users stay for two windows, at least 48 hours: a hash of account and user identifies them.
//
// It proceeds as [Accounts.ErasePerson] does, but adds nothing to the audit trail. It fails with [ErrNotFound] for an
// unknown account. If it fails midway, call it again for the rest.
func (a Accounts) Delete(ctx context.Context, id ID) (_ Receipt, err error) {
	defer wrap(&err, "delete account")
	account, err := a.s.store.Account(ctx, id)
	if err == nil && !a.s.bound { // counts that are written later would stay
		err = Quotas{a.s.quota}.Flush(ctx)
	}
	if err != nil {
		return Receipt{}, err
	}
	w := a.s.erasure(id)
	err = w.audited(ctx, "", "", id, nil, func() error {
		_, err := w.prune(ctx, w.deleteAccount, time.Time{})
		return err
	})
	a.s.ids.drop(account.Name)
	a.s.campaigns.clear()
	return w.receipt, err
}

// deleteAccount removes part of the account. It is a pruneFunc, and returns 0 when the account is gone.
func (w *erasure) deleteAccount(ctx context.Context, _ time.Time, limit int) (int, error) {
	out, err := w.store.DeleteAccount(ctx, w.receipt.AccountID, limit)
	w.keys.clear()
	if errors.Is(err, ErrNotFound) { // another call was faster
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if w.receipt.Events += out.Events; out.Account {
		return 0, nil
	}
	for c, err := range w.campaignsOf(ctx) {
		if err == nil {
			err = eraseEach(ctx, w, w.responsesOf(ctx, c.Key(), ResponseFilter{}), func(q *EraseQuery, r *Response) {
				q.Responses = append(q.Responses, r.Key())
			})
		}
		if err == nil {
			err = w.store.DeleteCampaign(ctx, c.Key(), nil)
		}
		if err != nil && !errors.Is(err, ErrCampaignNotEmpty) && !errors.Is(err, ErrNotFound) { // others may write meanwhile
			return 0, err
		}
	}
	_, err = w.prune(ctx, w.store.PruneEvents, time.Time{})
	return 1, err
}

// SetContact sets the e-mail address that is notified of webhooks that fail; "" means no
// notifications. It fails with [ErrNotFound] and *[ValidationError].
func (a Accounts) SetContact(ctx context.Context, id ID, email string) (_ Account, err error) {
	defer wrap(&err, "contact")
	if email != "" && !validEmail(email) {
		return Account{}, invalid("/contact", "invalid_email", "must be an e-mail address")
	}
	return a.s.store.UpdateAccount(ctx, id, func(account *Account) error {
		account.Contact = email
		return nil
	})
}

// ByName returns the account with that name, or [ErrNotFound].
func (a Accounts) ByName(ctx context.Context, name string) (_ Account, err error) {
	defer wrap(&err, "account")
	if CheckText(name) != nil {
		return Account{}, ErrNotFound
	}
	return a.s.store.AccountByName(ctx, name)
}

// Get returns the account with that ID, or [ErrNotFound].
func (a Accounts) Get(ctx context.Context, id ID) (_ Account, err error) {
	defer wrap(&err, "account")
	return a.s.store.Account(ctx, id)
}

// List returns every account, oldest first.
func (a Accounts) List(ctx context.Context) (_ []Account, err error) {
	defer wrap(&err, "accounts")
	return a.s.store.Accounts(ctx)
}

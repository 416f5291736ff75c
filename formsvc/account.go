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

// Accounts creates and lists accounts. It is safe for concurrent use.
type Accounts struct{ s *core }

// Create creates an account. It fails with [ErrConflict] if the name is taken and with a
// *[ValidationError] if it is empty or too long.
func (a Accounts) Create(ctx context.Context, name string) (Account, error) {
	account, _, err := a.create(ctx, name, nil)
	return account, err
}

// CreateWithKey creates an account and its first key in one atomic write: afterwards both exist, or
// neither. It fails as Create and [Keys.Create] do.
func (a Accounts) CreateWithKey(ctx context.Context, name string, in KeyInput) (Account, NewKey, error) {
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
// after each tenant's permanent identifier and calls Ensure with every request. An account keeps its name, so the
// identifier is cached, and only the first call asks the store.
func (a Accounts) Ensure(ctx context.Context, name string) (ID, error) {
	if id, ok := a.s.ids.get(name); ok {
		return id, nil
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
		a.s.ids.put(name, account.ID, 1)
	}
	return account.ID, nil
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

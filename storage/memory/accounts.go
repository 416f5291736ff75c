package memory

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateAccount implements [formsvc.Store].
func (s *Store) CreateAccount(ctx context.Context, a formsvc.Account, keys []formsvc.Key, change formsvc.Change) error {
	a, err := stored(&a)
	if err != nil {
		return err
	}
	var fresh table[*formsvc.Key]
	for i := range keys {
		key, err := stored(&keys[i])
		if err == nil {
			err = fresh.add(key.ID, &key)
		}
		if err != nil {
			return err
		}
	}
	return s.write(ctx, func() (formsvc.Change, error) {
		_, named := s.named(a.Name)
		_, taken := s.keys.first(func(k *formsvc.Key) bool {
			return fresh.count(func(key *formsvc.Key) bool { return key.ID == k.ID || key.Hash == k.Hash }) > 0
		})
		if named == nil || taken == nil {
			return change, formsvc.ErrConflict
		}
		return change, nil
	}, func() error {
		err := s.accounts.add(a.ID, &account{Account: a, references: make(map[string]bool)})
		for id, key := range fresh.rows {
			if err == nil {
				err = s.keys.add(id, key)
			}
		}
		return err
	})
}

// UpdateAccount implements [formsvc.Store].
func (s *Store) UpdateAccount(
	ctx context.Context, id formsvc.ID, decide func(*formsvc.Account) error,
) (formsvc.Account, error) {
	return locked(ctx, s, func() (formsvc.Account, error) {
		row, err := s.account(id)
		if err != nil {
			return formsvc.Account{}, err
		}
		a := row.Account
		if err := decide(&a); err != nil {
			return formsvc.Account{}, err
		}
		if a, err = stored(&a); err != nil {
			return formsvc.Account{}, err
		}
		if other, err := s.named(a.Name); err == nil && other != row {
			return formsvc.Account{}, formsvc.ErrConflict
		}
		row.Account = a
		return a, nil
	})
}

// Account implements [formsvc.Store].
func (s *Store) Account(ctx context.Context, id formsvc.ID) (formsvc.Account, error) {
	return read(ctx, s, s.account, id, copyAccount)
}

// AccountByName implements [formsvc.Store].
func (s *Store) AccountByName(ctx context.Context, name string) (formsvc.Account, error) {
	if err := formsvc.CheckText(name); err != nil {
		return formsvc.Account{}, err
	}
	return read(ctx, s, s.named, name, copyAccount)
}

// Accounts implements [formsvc.Store].
func (s *Store) Accounts(ctx context.Context) ([]formsvc.Account, error) {
	return listed(ctx, s, &s.accounts, nil, copyAccount)
}

// CreateKey implements [formsvc.Store].
func (s *Store) CreateKey(ctx context.Context, key formsvc.Key, change formsvc.Change) error {
	row, err := stored(&key)
	if err != nil {
		return err
	}
	usable := func(k *formsvc.Key) bool {
		return k.AccountID == key.AccountID && k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || k.ExpiresAt.After(key.CreatedAt))
	}
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.account(key.AccountID)
		_, free := s.key(key.Hash)
		switch {
		case err != nil:
		case free == nil:
			err = formsvc.ErrConflict
		case change.Limit > 0 && s.keys.count(usable) >= change.Limit:
			err = formsvc.ErrLimit
		}
		return change, err
	}, func() error {
		return s.keys.add(key.ID, &row)
	})
}

// KeyByHash implements [formsvc.Store].
func (s *Store) KeyByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Key, error) {
	return read(ctx, s, s.key, hash, copyOf)
}

// Keys implements [formsvc.Store].
func (s *Store) Keys(ctx context.Context, id formsvc.ID) ([]formsvc.Key, error) {
	return listed(ctx, s, &s.keys, func(k *formsvc.Key) bool { return k.AccountID == id }, copyOf)
}

// RevokeKey implements [formsvc.Store].
func (s *Store) RevokeKey(ctx context.Context, accountID, id formsvc.ID, at time.Time, change formsvc.Change) error {
	var key *formsvc.Key
	return s.write(ctx, func() (_ formsvc.Change, err error) {
		key, err = s.keys.first(func(k *formsvc.Key) bool { return k.ID == id && k.AccountID == accountID })
		if err != nil || !key.RevokedAt.IsZero() {
			return formsvc.Change{}, err
		}
		return change, nil
	}, func() error {
		if key.RevokedAt.IsZero() {
			key.RevokedAt = kept(at)
		}
		return nil
	})
}

// UseKeys implements [formsvc.Store].
func (s *Store) UseKeys(ctx context.Context, uses []formsvc.KeyUse) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, use := range uses {
		if key, err := s.keys.get(use.ID); err == nil && key.AccountID == use.AccountID && use.At.After(key.LastUsedAt) {
			key.LastUsedAt = kept(use.At)
		}
	}
	return nil
}

// account returns the account with that ID. The caller holds s.mu.
func (s *Store) account(id formsvc.ID) (*account, error) { return s.accounts.get(id) }

// key returns the key with that hash. The caller holds s.mu.
func (s *Store) key(hash [sha256.Size]byte) (*formsvc.Key, error) {
	return s.keys.first(func(key *formsvc.Key) bool { return key.Hash == hash })
}

// named returns the account with that name. The caller holds s.mu.
func (s *Store) named(name string) (*account, error) {
	return s.accounts.first(func(a *account) bool { return a.Name == name })
}

// accountOrNone is account for lists: those of an unknown account are empty.
func (s *Store) accountOrNone(id formsvc.ID) (*account, error) {
	if a, err := s.account(id); err == nil {
		return a, nil
	}
	return new(account), nil
}

func copyAccount(a *account) formsvc.Account { return a.Account }

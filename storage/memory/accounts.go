package memory

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateAccount implements [formsvc.AccountStore].
func (s *Store) CreateAccount(ctx context.Context, a formsvc.Account, keys []formsvc.Key, change formsvc.Change) error {
	if err := checkAccount(&a); err != nil {
		return err
	}
	for i := range keys {
		if err := checkKey(&keys[i]); err != nil {
			return err
		}
	}
	a.CreatedAt = kept(a.CreatedAt)
	row := &account{Account: a, references: make(map[string]bool)}
	return s.write(ctx, &change, func() error {
		for i := range keys {
			if s.keys[keys[i].Hash] != nil {
				return formsvc.ErrConflict
			}
			if err := row.keys.add(keys[i].ID, new(copyKey(&keys[i]))); err != nil {
				return err
			}
		}
		if s.names[a.Name] != nil {
			return formsvc.ErrConflict
		}
		return nil
	}, func() error {
		if err := s.accounts.add(a.ID, row); err != nil {
			return err
		}
		s.names[a.Name] = row
		for _, key := range row.keys.rows {
			s.keys[key.Hash] = key
		}
		return nil
	})
}

// UpdateAccount implements [formsvc.AccountStore].
func (s *Store) UpdateAccount(
	ctx context.Context, id formsvc.ID, decide func(*formsvc.Account) error,
) (formsvc.Account, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Account{}, err
	}
	defer s.mu.Unlock()
	row, err := s.account(id)
	if err != nil {
		return formsvc.Account{}, err
	}
	a := row.Account
	if err := decide(&a); err != nil {
		return formsvc.Account{}, err
	}
	if err := checkAccount(&a); err != nil {
		return formsvc.Account{}, err
	}
	if other := s.names[a.Name]; other != nil && other != row {
		return formsvc.Account{}, formsvc.ErrConflict
	}
	delete(s.names, row.Name)
	s.names[a.Name] = row
	row.Account = a
	return a, nil
}

// Account implements [formsvc.AccountStore].
func (s *Store) Account(ctx context.Context, id formsvc.ID) (formsvc.Account, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Account{}, err
	}
	defer s.mu.Unlock()
	a, err := s.account(id)
	if err != nil {
		return formsvc.Account{}, err
	}
	return a.Account, nil
}

// AccountByName implements [formsvc.AccountStore].
func (s *Store) AccountByName(ctx context.Context, name string) (formsvc.Account, error) {
	if err := formsvc.CheckText(name); err != nil {
		return formsvc.Account{}, err
	}
	if err := s.enter(ctx); err != nil {
		return formsvc.Account{}, err
	}
	defer s.mu.Unlock()
	a := s.names[name]
	if a == nil {
		return formsvc.Account{}, formsvc.ErrNotFound
	}
	return a.Account, nil
}

// Accounts implements [formsvc.AccountStore].
func (s *Store) Accounts(ctx context.Context) ([]formsvc.Account, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return list(&s.accounts, func(a *account) formsvc.Account { return a.Account }), nil
}

// usableKeys counts the keys that are neither revoked nor expired.
func (a *account) usableKeys(at time.Time) (n int) {
	for _, k := range a.keys.rows {
		if k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || k.ExpiresAt.After(at)) {
			n++
		}
	}
	return n
}

// CreateKey implements [formsvc.KeyStore].
func (s *Store) CreateKey(ctx context.Context, key formsvc.Key, change formsvc.Change) error {
	if err := checkKey(&key); err != nil {
		return err
	}
	var a *account
	return s.write(ctx, &change, func() (err error) {
		a, err = s.account(key.AccountID)
		switch {
		case err != nil:
			return err
		case s.keys[key.Hash] != nil:
			return formsvc.ErrConflict
		case change.Limit > 0 && a.usableKeys(key.CreatedAt) >= change.Limit:
			return formsvc.ErrLimit
		}
		return nil
	}, func() error {
		row := new(copyKey(&key))
		if err := a.keys.add(key.ID, row); err != nil {
			return err
		}
		s.keys[key.Hash] = row
		return nil
	})
}

// KeyByHash implements [formsvc.KeyStore].
func (s *Store) KeyByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Key, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Key{}, err
	}
	defer s.mu.Unlock()
	key := s.keys[hash]
	if key == nil {
		return formsvc.Key{}, formsvc.ErrNotFound
	}
	return copyKey(key), nil
}

// Keys implements [formsvc.KeyStore].
func (s *Store) Keys(ctx context.Context, id formsvc.ID) ([]formsvc.Key, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	a, err := s.account(id)
	if err != nil {
		return nil, nil // an unknown account has none
	}
	return list(&a.keys, copyKey), nil
}

// RevokeKey implements [formsvc.KeyStore].
func (s *Store) RevokeKey(ctx context.Context, accountID, id formsvc.ID, at time.Time, change formsvc.Change) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	a, err := s.account(accountID)
	if err != nil {
		return err
	}
	key, ok := a.keys.get(id)
	if !ok {
		return formsvc.ErrNotFound
	}
	if !key.RevokedAt.IsZero() {
		return nil
	}
	if err := s.admit(&change); err != nil {
		return err
	}
	key.RevokedAt = kept(at)
	s.apply(&change)
	return nil
}

// UseKeys implements [formsvc.KeyStore].
func (s *Store) UseKeys(ctx context.Context, uses []formsvc.KeyUse) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, use := range uses {
		a, err := s.account(use.AccountID)
		if err != nil {
			continue
		}
		if key, ok := a.keys.get(use.ID); ok && use.At.After(key.LastUsedAt) {
			key.LastUsedAt = kept(use.At)
		}
	}
	return nil
}

// account returns the account with that ID. The caller holds s.mu.
func (s *Store) account(id formsvc.ID) (*account, error) {
	a, ok := s.accounts.get(id)
	if !ok {
		return nil, formsvc.ErrNotFound
	}
	return a, nil
}

func checkAccount(a *formsvc.Account) error {
	return formsvc.CheckText(string(a.ID), a.Name, a.Contact)
}

func checkKey(key *formsvc.Key) error {
	texts := []string{string(key.ID), string(key.AccountID), key.Name, key.Prefix}
	for _, p := range key.Permissions {
		texts = append(texts, string(p))
	}
	return formsvc.CheckText(texts...)
}

func copyKey(key *formsvc.Key) formsvc.Key {
	k := *key
	k.Permissions = slices.Clone(k.Permissions)
	k.CreatedAt, k.ExpiresAt, k.RevokedAt = kept(k.CreatedAt), kept(k.ExpiresAt), kept(k.RevokedAt)
	k.LastUsedAt = kept(k.LastUsedAt)
	return k
}

package bunstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

type accountRow struct {
	bun.BaseModel `bun:"table:formsvc_accounts,alias:a"`

	ID        ID `bun:",pk"`
	Name      string
	Contact   string
	CreatedAt int64
}

func newAccountRow(a *formsvc.Account) (*accountRow, error) {
	if err := errors.Join(checkIDs(a.ID), formsvc.CheckText(a.Name, a.Contact)); err != nil {
		return nil, err
	}
	return &accountRow{ID: ID(a.ID), Name: a.Name, Contact: a.Contact, CreatedAt: micros(a.CreatedAt)}, nil
}

func (r *accountRow) account() formsvc.Account {
	return formsvc.Account{
		ID: formsvc.ID(r.ID), Name: r.Name, Contact: r.Contact, CreatedAt: fromMicros(r.CreatedAt),
	}
}

type keyRow struct {
	bun.BaseModel `bun:"table:formsvc_keys,alias:k"`

	ID          ID `bun:",pk"`
	AccountID   ID
	Name        string
	Prefix      string
	Hash        []byte
	Permissions string
	CreatedAt   int64
	ExpiresAt   int64
	RevokedAt   int64
	UsedAt      int64
}

func newKeyRow(k *formsvc.Key) *keyRow {
	permissions := make([]string, len(k.Permissions))
	for i, p := range k.Permissions {
		permissions[i] = string(p)
	}
	return &keyRow{
		ID: ID(k.ID), AccountID: ID(k.AccountID), Name: k.Name, Prefix: k.Prefix, Hash: k.Hash[:],
		Permissions: strings.Join(permissions, " "),
		CreatedAt:   micros(k.CreatedAt), ExpiresAt: micros(k.ExpiresAt), RevokedAt: micros(k.RevokedAt),
		UsedAt: micros(k.LastUsedAt),
	}
}

func (r *keyRow) key() formsvc.Key {
	k := formsvc.Key{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), Name: r.Name, Prefix: r.Prefix,
		CreatedAt: fromMicros(r.CreatedAt), ExpiresAt: fromMicros(r.ExpiresAt), RevokedAt: fromMicros(r.RevokedAt),
		LastUsedAt: fromMicros(r.UsedAt),
	}
	copy(k.Hash[:], r.Hash)
	for p := range strings.FieldsSeq(r.Permissions) {
		k.Permissions = append(k.Permissions, formsvc.Permission(p))
	}
	return k
}

// notFound turns "no rows" into formsvc.ErrNotFound and classifies the rest.
func (s *Store) notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return formsvc.ErrNotFound
	}
	if err != nil {
		return s.backend.Classify(err)
	}
	return nil
}

// CreateAccount implements formsvc.AccountStore.
func (s *Store) CreateAccount(ctx context.Context, account formsvc.Account, keys []formsvc.Key, change formsvc.Change) error {
	row, err := newAccountRow(&account)
	if err != nil {
		return err
	}
	for i := range keys {
		if err := checkKey(&keys[i]); err != nil {
			return err
		}
	}
	return s.write(ctx, nil, &change, func(ctx context.Context, c *Tx) error {
		if _, err := s.build.NewInsert().Conn(c).Model(row).Exec(ctx); err != nil {
			return err
		}
		for i := range keys {
			if _, err := s.build.NewInsert().Conn(c).Model(newKeyRow(&keys[i])).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func checkKey(k *formsvc.Key) error {
	for _, p := range k.Permissions {
		if err := formsvc.CheckText(string(p)); err != nil {
			return err
		}
		if strings.ContainsAny(string(p), " \t\r\n") {
			return fmt.Errorf("bunstore: a permission has a space: %w", formsvc.ErrInvalid)
		}
	}
	return errors.Join(checkIDs(k.ID), formsvc.CheckText(k.Name, k.Prefix))
}

// UpdateAccount implements formsvc.AccountStore.
func (s *Store) UpdateAccount(
	ctx context.Context, id formsvc.ID, decide func(*formsvc.Account) error,
) (formsvc.Account, error) {
	var account formsvc.Account
	err := s.write(ctx, ids(id), nil, func(ctx context.Context, c *Tx) error {
		row, err := lockRow[accountRow](ctx, s, c, "id = ?", ID(id))
		if err != nil {
			return err
		}
		account = row.account()
		if err := decide(&account); err != nil {
			return err
		}
		changed, err := newAccountRow(&account)
		if err != nil {
			return err
		}
		account = changed.account()
		_, err = s.build.NewUpdate().Conn(c).Model(changed).Column("name", "contact").WherePK().Exec(ctx)
		return err
	})
	return account, err
}

// Account implements formsvc.AccountStore.
func (s *Store) Account(ctx context.Context, id formsvc.ID) (formsvc.Account, error) {
	return one(ctx, s, (*accountRow).account, "id = ?", ID(id))
}

// AccountByName implements formsvc.AccountStore.
func (s *Store) AccountByName(ctx context.Context, name string) (formsvc.Account, error) {
	if err := formsvc.CheckText(name); err != nil {
		return formsvc.Account{}, err
	}
	return one(ctx, s, (*accountRow).account, "name = ?", name)
}

// Accounts implements formsvc.AccountStore.
func (s *Store) Accounts(ctx context.Context) ([]formsvc.Account, error) {
	return all(ctx, s, (*accountRow).account, "true")
}

// CreateKey implements formsvc.Store.
func (s *Store) CreateKey(ctx context.Context, key formsvc.Key, change formsvc.Change) error {
	if err := checkKey(&key); err != nil {
		return err
	}
	return s.write(ctx, ids(key.AccountID), &change, func(ctx context.Context, c *Tx) error {
		if err := s.checkKeyLimit(ctx, c, &key, change.Limit); err != nil {
			return err
		}
		_, err := s.build.NewInsert().Conn(c).Model(newKeyRow(&key)).Exec(ctx)
		return err
	})
}

// checkKeyLimit locks the account, so that concurrent creations wait for each other.
func (s *Store) checkKeyLimit(ctx context.Context, c bun.IConn, key *formsvc.Key, limit int) error {
	if limit <= 0 {
		return nil
	}
	if _, err := lockRow[accountRow](ctx, s, c, "id = ?", ID(key.AccountID)); err != nil {
		return err
	}
	n, err := s.build.NewSelect().Conn(c).Model((*keyRow)(nil)).Where("account_id = ?", ID(key.AccountID)).Where("revoked_at = ?", Never).
		Where("expires_at = ? OR expires_at > ?", Never, micros(key.CreatedAt)).Count(ctx)
	if err == nil && n >= int64(limit) {
		err = formsvc.ErrLimit
	}
	return err
}

// KeyByHash implements formsvc.Store.
func (s *Store) KeyByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Key, error) {
	return one(ctx, s, (*keyRow).key, "hash = ?", hash[:])
}

// Keys implements formsvc.Store.
func (s *Store) Keys(ctx context.Context, account formsvc.ID) ([]formsvc.Key, error) {
	return all(ctx, s, (*keyRow).key, "account_id = ?", ID(account))
}

// RevokeKey implements formsvc.Store.
func (s *Store) RevokeKey(ctx context.Context, account, id formsvc.ID, at time.Time, change formsvc.Change) error {
	if err := cmp.Or(s.ready(ctx, account, id), checkChange(&change)); err != nil {
		return err
	}
	return s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		row, err := lockRow[keyRow](ctx, s, c, "account_id = ? AND id = ?", ID(account), ID(id))
		if err != nil || row.RevokedAt != Never {
			return err
		}
		row.RevokedAt = micros(at)
		if _, err := s.build.NewUpdate().Conn(c).Model(&row).Column("revoked_at").WherePK().Exec(ctx); err != nil {
			return err
		}
		return s.apply(ctx, c, &change)
	})
}

// changedOne returns formsvc.ErrNotFound when a statement changed no row.
func changedOne(result sql.Result, err error) error {
	n, err := Affected(result, err)
	if err == nil && n == 0 {
		err = formsvc.ErrNotFound
	}
	return err
}

// A keyUse is when a key was last used. The types are those of the columns it is compared to.
type keyUse struct {
	ID        ID    `bun:"type:uuid"`
	AccountID ID    `bun:"type:uuid"`
	UsedAt    int64 `bun:"type:bigint"`
}

// UseKeys implements formsvc.Store. A statement for each use would cost more than the
// update itself. Keys are locked in the order of their identifiers, so that nodes that
// write at the same time don't deadlock.
func (s *Store) UseKeys(ctx context.Context, uses []formsvc.KeyUse) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	latest := make(map[[2]formsvc.ID]keyUse, len(uses))
	for _, use := range uses {
		if checkIDs(use.AccountID, use.ID) != nil {
			continue // there is no such key
		}
		key, at := [2]formsvc.ID{use.AccountID, use.ID}, micros(use.At)
		if before, ok := latest[key]; !ok || before.UsedAt < at {
			latest[key] = keyUse{ID: ID(use.ID), AccountID: ID(use.AccountID), UsedAt: at}
		}
	}
	if len(latest) == 0 {
		return nil
	}
	rows := slices.Collect(maps.Values(latest))
	return s.single(ctx, func(ctx context.Context, c *Tx) error {
		held := s.locked(s.build.NewSelect().TableExpr("u").Join("CROSS JOIN formsvc_keys AS k").
			ColumnExpr("k.id, u.used_at").Where("k.id = u.id AND k.account_id = u.account_id AND k.used_at < u.used_at").
			Order("k.id"), " OF k")
		_, err := s.build.NewUpdate().Conn(c).With("u", s.build.NewValues(&rows)).With("held", held).
			TableExpr("formsvc_keys AS k").TableExpr("held").Set("used_at = held.used_at").
			Where("k.id = held.id AND k.used_at < held.used_at").Exec(ctx)
		return err
	})
}

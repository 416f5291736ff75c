package formsvc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
)

// A Permission is what a key may do.
type Permission string

// The permissions of the specification, and the two for webhooks that the
// service adds.
const (
	CampaignsRead  Permission = "campaigns:read"  // read campaigns
	CampaignsWrite Permission = "campaigns:write" // create and modify campaigns
	ResponsesRead  Permission = "responses:read"  // read responses
	ResponsesWrite Permission = "responses:write" // create and modify responses
	FilesRead      Permission = "files:read"      // download files
	WebhooksRead   Permission = "webhooks:read"   // read webhooks and their deliveries
	WebhooksWrite  Permission = "webhooks:write"  // create, modify and delete webhooks
)

// AllPermissions returns every permission there is.
func AllPermissions() []Permission {
	return []Permission{
		CampaignsRead, CampaignsWrite, ResponsesRead, ResponsesWrite, FilesRead, WebhooksRead, WebhooksWrite,
	}
}

// A Key is an API key without its value, which is shown once, when it is made.
type Key struct {
	ID          ID
	AccountID   ID
	Name        string // 1 to 100 characters
	Prefix      string // the first characters of the value, to tell keys apart
	Hash        [sha256.Size]byte
	Permissions []Permission
	CreatedAt   time.Time
	ExpiresAt   time.Time // zero: never
	RevokedAt   time.Time // zero: in force
	// LastUsedAt is when the key was last accepted, to about a minute; zero: never.
	// What was noted within the last minute is lost when a process is killed, and
	// nothing is written where no [Service.Run] runs.
	LastUsedAt time.Time
}

// usable reports whether the key opens anything at that time.
func (k *Key) usable(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// A Principal is who a request speaks for. A program with a login of its own makes one
// for whoever is signed in (Options.Authenticate of package httpx).
type Principal struct {
	AccountID ID
	// KeyID is the API key; "" for whom such a program has signed in.
	KeyID ID
	// UserID is who is signed in, without a KeyID: what identifies him in such a program and
	// never changes. The quota counts his requests by it ([Principal.Subject]). Only a hash
	// of it is stored. Defaults to KeyName.
	UserID string
	// NoQuota leaves the quota alone: his requests are not counted. Defaults to counting
	// them.
	NoQuota bool
	// KeyName is the name of the key, or of whoever is signed in: the author of what he
	// comments and, without a KeyID, the actor of what he changes of webhooks.
	KeyName string
	// Permissions are what he may do. Whatever is not named is refused.
	Permissions []Permission
}

// May reports whether the principal has the permission.
func (p *Principal) May(permission Permission) bool {
	return slices.Contains(p.Permissions, permission)
}

// Subject returns whose requests these are, for all that counts requests: those of the key;
// without one, those of the user in his account; and without his name, those of the
// account.
func (p *Principal) Subject() ID {
	switch user := cmp.Or(p.UserID, p.KeyName); {
	case p.KeyID != "":
		return p.KeyID
	case user != "":
		return hashedID(string(p.AccountID) + " " + user)
	}
	return p.AccountID
}

// A key's value is keyPrefix, 43 random base62 characters (256 bits) and a
// checksum of 6, so that a typing error costs no query and scanners can tell a
// real key from a look-alike: formsvc_[0-9A-Za-z]{49}.
const (
	keyPrefix   = "formsvc_"
	keyRandom   = 43
	keyChecksum = 6
	keyLength   = len(keyPrefix) + keyRandom + keyChecksum
	keyShown    = len(keyPrefix) + 6
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newKeyValue returns a fresh key value.
func newKeyValue() string {
	b := make([]byte, 0, keyLength)
	b = append(b, keyPrefix...)
	var random [64]byte
	for len(b) < len(keyPrefix)+keyRandom {
		_, _ = rand.Read(random[:]) // never fails since Go 1.24
		for _, r := range random {
			// Bytes from 248 on would make some characters likelier than others.
			if r < 248 && len(b) < len(keyPrefix)+keyRandom {
				b = append(b, base62[r%62])
			}
		}
	}
	return string(appendChecksum(b, b[len(keyPrefix):]))
}

func appendChecksum(dst, of []byte) []byte {
	sum := crc32.ChecksumIEEE(of)
	for range keyChecksum {
		dst = append(dst, base62[sum%62])
		sum /= 62
	}
	return dst
}

// plausibleKey reports whether value can be a key at all.
func plausibleKey(value string) bool {
	if len(value) != keyLength || !strings.HasPrefix(value, keyPrefix) {
		return false
	}
	var b [keyLength]byte
	copy(b[:], value)
	var sum [keyChecksum]byte
	return string(appendChecksum(sum[:0], b[len(keyPrefix):keyLength-keyChecksum])) == value[keyLength-keyChecksum:]
}

// Keys makes, checks and revokes API keys. It is safe for concurrent use.
type Keys struct{ s *core }

// KeyInput is what a new key needs.
type KeyInput struct {
	Name        string
	Permissions []Permission  // at least one
	Expires     time.Duration // from now; 0 means never
}

// Create makes a key and returns its value, which can't be read again.
func (k Keys) Create(ctx context.Context, account ID, in KeyInput) (_ Key, _ string, err error) {
	defer k.s.span(&ctx, "Keys.Create").end(&err)
	key, value, err := k.s.makeKey(account, in)
	if err != nil {
		return Key{}, "", err
	}
	change := Change{Audit: k.s.audit(account, AuditKeyCreated, key.ID, key.auditDetails()), Idempotency: k.s.record(&key)}
	if err := k.s.store.CreateKey(ctx, key, change); err != nil {
		return Key{}, "", fmt.Errorf("formsvc: create key: %w", err)
	}
	return key, value, nil
}

func (c *core) makeKey(account ID, in KeyInput) (Key, string, error) {
	var v ValidationError
	if strings.TrimSpace(in.Name) == "" {
		v.add("/name", "required", "must not be empty")
	}
	v.checkLine("/name", in.Name, 100)
	if len(in.Permissions) == 0 {
		v.add("/permissions", "required", "must name at least one permission")
	}
	for i, p := range in.Permissions {
		if !slices.Contains(AllPermissions(), p) {
			v.add(fmt.Sprintf("/permissions/%d", i), "unknown_permission", "must be one of %v", AllPermissions())
		}
	}
	if in.Expires < 0 {
		v.add("/expires", "out_of_range", "must not be negative")
	}
	if err := v.err(); err != nil {
		return Key{}, "", err
	}
	now, value := c.now(), newKeyValue()
	key := Key{
		ID: c.newID(now), AccountID: account, Name: in.Name, Prefix: value[:keyShown],
		Hash: sha256.Sum256([]byte(value)), Permissions: slices.Compact(slices.Sorted(slices.Values(in.Permissions))),
		CreatedAt: now,
	}
	if in.Expires > 0 {
		key.ExpiresAt = now.Add(in.Expires)
	}
	return key, value, nil
}

// auditDetails returns what the audit trail says of a key.
func (k *Key) auditDetails() map[string]string {
	permissions := make([]string, len(k.Permissions))
	for i, p := range k.Permissions {
		permissions[i] = string(p)
	}
	return map[string]string{"name": k.Name, "prefix": k.Prefix, "permissions": strings.Join(permissions, " ")}
}

// List returns the account's keys, oldest first, revoked ones included.
func (k Keys) List(ctx context.Context, account ID) (_ []Key, err error) {
	defer k.s.span(&ctx, "Keys.List").end(&err)
	keys, err := k.s.store.Keys(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("formsvc: keys: %w", err)
	}
	return keys, nil
}

// Revoke ends a key for good. It fails with [ErrNotFound] when the account has
// no such key; revoking twice is no error. Nodes notice within [KeyCacheTTL].
func (k Keys) Revoke(ctx context.Context, account, id ID) (err error) {
	defer k.s.span(&ctx, "Keys.Revoke").end(&err)
	if err := k.s.store.RevokeKey(ctx, account, id, k.s.now(), Change{Audit: k.s.audit(account, AuditKeyRevoked, id, nil)}); err != nil {
		return fmt.Errorf("formsvc: revoke key: %w", err)
	}
	k.s.keys.clear()
	return nil
}

// Authenticate returns who the key value speaks for. It fails with
// [ErrUnauthenticated] whatever is wrong with the key, and with another error
// when the store can't say. The answer may be as old as [KeyCacheTTL]. It is
// shared with other calls, so it must not be changed.
func (k Keys) Authenticate(ctx context.Context, value string) (_ *Principal, err error) {
	defer k.s.span(&ctx, "Keys.Authenticate").end(&err)
	if !plausibleKey(value) {
		return nil, ErrUnauthenticated
	}
	hash := sha256.Sum256([]byte(value))
	now := k.s.now()
	if key, ok := k.s.keys.get(hash); ok && key.freshAt(now) {
		return key.principalAt(now)
	}
	key, err := k.s.store.KeyByHash(ctx, hash)
	if errors.Is(err, ErrNotFound) {
		return nil, ErrUnauthenticated
	}
	if err != nil {
		return nil, fmt.Errorf("formsvc: authenticate: %w", err)
	}
	cached := &cachedKey{Key: key, principal: Principal{
		AccountID: key.AccountID, KeyID: key.ID, KeyName: key.Name, Permissions: key.Permissions,
	}, until: now.Add(KeyCacheTTL)}
	k.s.keys.put(hash, cached)
	who, err := cached.principalAt(now)
	if err == nil {
		k.s.noteUse(KeyUse{AccountID: key.AccountID, ID: key.ID, At: now})
	}
	return who, err
}

// A cachedKey is a key that was seen lately.
type cachedKey struct {
	Key
	principal Principal
	until     time.Time
}

func (c *cachedKey) principalAt(now time.Time) (*Principal, error) {
	if !c.usable(now) {
		return nil, ErrUnauthenticated
	}
	return &c.principal, nil
}

// freshAt reports whether the key may be used without asking the store. What was read
// under a clock that has been set back since may not: it would last until that clock is
// reached again.
func (c *cachedKey) freshAt(now time.Time) bool {
	return now.Before(c.until) && !now.Before(c.until.Add(-KeyCacheTTL))
}

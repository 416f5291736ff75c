package formsvc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
	"time"
)

// A Permission is something that a key may do.
type Permission string

// The permissions of the specification, and the two for webhooks that the service adds.
const (
	CampaignsRead  Permission = "campaigns:read"  // read campaigns
	CampaignsWrite Permission = "campaigns:write" // create and modify campaigns
	ResponsesRead  Permission = "responses:read"  // read responses
	ResponsesWrite Permission = "responses:write" // create and modify responses
	FilesRead      Permission = "files:read"      // download files
	WebhooksRead   Permission = "webhooks:read"   // read webhooks and their deliveries
	WebhooksWrite  Permission = "webhooks:write"  // create, modify and delete webhooks
)

// KeysWrite lets a person read, create and revoke API keys on the console. No key can have it.
const KeysWrite Permission = "keys:write"

// PeopleWrite lets a person invite, change and remove the members of the account on the console. No key can have it.
const PeopleWrite Permission = "people:write"

// AllPermissions returns every permission that a key can have.
func AllPermissions() []Permission {
	return []Permission{
		CampaignsRead, CampaignsWrite, ResponsesRead, ResponsesWrite, FilesRead, WebhooksRead, WebhooksWrite,
	}
}

// A Role is a usual set of permissions of a person.
type Role string

// The roles.
const (
	Admin    Role = "admin"    // everything, keys and members too
	Editor   Role = "editor"   // everything but keys and members
	Reviewer Role = "reviewer" // reads and changes responses with their files, reads campaigns
	Viewer   Role = "viewer"   // reads everything but keys
)

// Permissions returns the permissions of the role. It is empty, but not nil, for an unknown one.
func (r Role) Permissions() []Permission {
	switch r {
	case Admin:
		return append(AllPermissions(), KeysWrite, PeopleWrite)
	case Editor:
		return AllPermissions()
	case Reviewer:
		return []Permission{CampaignsRead, ResponsesRead, ResponsesWrite, FilesRead}
	case Viewer:
		return []Permission{CampaignsRead, ResponsesRead, FilesRead, WebhooksRead}
	}
	return []Permission{}
}

// A Key is an API key without its value, which only [NewKey] has.
type Key struct {
	ID          ID
	AccountID   ID
	Name        string // 1 to 100 characters
	Prefix      string // the first characters of the value, to distinguish keys
	Hash        [sha256.Size]byte
	Permissions []Permission
	CreatedAt   time.Time
	ExpiresAt   time.Time // zero: never
	RevokedAt   time.Time // zero: not revoked
	// LastUsedAt is when the key was last accepted, accurate to about a minute; zero: never.
	// [Service.Run] writes it. If a process is killed, the uses of its last minute are lost.
	LastUsedAt time.Time
}

// A NewKey is a key that was just created.
type NewKey struct {
	Key

	// Value is what clients send. It can't be read again, and is "" if the call repeated an earlier one
	// ([Call]).
	Value string `json:"-"`
}

// String names the key without its value.
func (k NewKey) String() string { return "key " + string(k.ID) }

// usable reports whether the key is active at that time.
func (k *Key) usable(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// A Principal is the key or user that a request acts for. A host application with its own login
// creates one for each signed-in user (Options.Authenticate of package httpx).
type Principal struct {
	AccountID ID
	// KeyID is the API key; "" for a user of the host application.
	KeyID ID
	// UserID is the permanent identifier of a user of the host application, without a KeyID. The quota counts the
	// user's requests by its hash ([Principal.Subject]). Events have it as their actor's ID. Defaults to KeyName.
	UserID string
	// NoQuota exempts the principal's requests from the quota. Defaults to counting them.
	NoQuota bool
	// KeyName is the name of the key or of the user. It is the author of the principal's comments
	// and, without a KeyID, the actor of changes to webhooks.
	KeyName string
	// Permissions lists everything that the principal may do.
	Permissions []Permission
}

// May reports whether the principal has the permission.
func (p *Principal) May(permission Permission) bool {
	return slices.Contains(p.Permissions, permission)
}

// Subject returns the identifier by which requests are counted: the key's. Without a key it is
// derived from the user and the account; without a user it is the account's.
func (p *Principal) Subject() ID {
	switch user := cmp.Or(p.UserID, p.KeyName); {
	case p.KeyID != "":
		return p.KeyID
	case user != "":
		return hashID(string(p.AccountID) + " " + user)
	}
	return p.AccountID
}

// A key's value is keyPrefix, 43 random base62 characters (256 bits) and a checksum of 6, so that a
// typing error costs no query and secret scanners can recognize real keys: formsvc_[0-9A-Za-z]{49}.
const (
	keyPrefix   = "formsvc_"
	keyRandom   = 43
	keyChecksum = 6
	keyShown    = len(keyPrefix) + 6
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newKeyValue returns a new key value.
func newKeyValue() string {
	all := new(big.Int).Exp(big.NewInt(62), big.NewInt(keyRandom), nil)
	n, _ := rand.Int(rand.Reader, all) // never fails since Go 1.24
	random := n.Text(62)
	random = strings.Repeat("0", keyRandom-len(random)) + random
	return keyPrefix + random + checksum(random)
}

// checksum returns the CRC-32 of a text in base 62, the lowest digit first.
func checksum(of string) string {
	sum := crc32.ChecksumIEEE([]byte(of))
	var b [keyChecksum]byte
	for i := range b {
		b[i] = base62[sum%62]
		sum /= 62
	}
	return string(b[:])
}

// plausibleKey reports whether value has the form and checksum of a key.
func plausibleKey(value string) bool {
	rest, ok := strings.CutPrefix(value, keyPrefix)
	return ok && len(rest) == keyRandom+keyChecksum && checksum(rest[:keyRandom]) == rest[keyRandom:]
}

// Keys creates, authenticates and revokes API keys. It is safe for concurrent use.
type Keys struct{ s *core }

// KeyInput is what a new key needs.
type KeyInput struct {
	Name        string        // 1 to 100 characters
	Permissions []Permission  // at least one
	Expires     time.Duration // from now; 0 means never
}

// Create creates a key. It fails with a *[ValidationError], and with a *[LimitError] if the account has
// as many keys as it may that are neither revoked nor expired.
func (k Keys) Create(ctx context.Context, account ID, in KeyInput) (_ NewKey, err error) {
	defer wrap(&err, "create key")
	return once(ctx, k.s, account, func() (NewKey, error) {
		key, err := k.s.makeKey(account, in)
		if err != nil {
			return NewKey{}, err
		}
		limits, err := k.s.limits(ctx, account)
		if err != nil {
			return NewKey{}, err
		}
		change := Change{
			Audit: k.s.audit(account, AuditKeyCreated, key.ID, key.auditDetails()), Limit: limits.Keys,
			Idempotency: record(k.s, account, "", &key),
		}
		if err := k.s.store.CreateKey(ctx, key.Key, change); err != nil {
			return NewKey{}, limited(err, "keys", limits.Keys)
		}
		return key, nil
	})
}

func (c *core) makeKey(account ID, in KeyInput) (NewKey, error) {
	var v ValidationError
	v.checkTitle("/name", in.Name, 100)
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
		return NewKey{}, err
	}
	now, value := c.now(), newKeyValue()
	key := Key{
		ID: c.NewID(now), AccountID: account, Name: in.Name, Prefix: value[:keyShown],
		Hash: sha256.Sum256([]byte(value)), Permissions: slices.Compact(slices.Sorted(slices.Values(in.Permissions))),
		CreatedAt: now,
	}
	if in.Expires > 0 {
		key.ExpiresAt = now.Add(in.Expires)
	}
	return NewKey{key, value}, nil
}

// auditDetails returns the details of a key for the audit trail.
func (k *Key) auditDetails() map[string]string {
	return map[string]string{"name": k.Name, "prefix": k.Prefix, "permissions": strings.Trim(fmt.Sprint(k.Permissions), "[]")}
}

// List returns the account's keys, oldest first, revoked ones included.
func (k Keys) List(ctx context.Context, account ID) (_ []Key, err error) {
	defer wrap(&err, "keys")
	return k.s.store.Keys(ctx, account)
}

// Revoke revokes a key permanently. It fails with [ErrNotFound] if the account has no such key;
// revoking a key twice is no error. Other nodes notice within [KeyCacheTTL].
func (k Keys) Revoke(ctx context.Context, account, id ID) (err error) {
	defer wrap(&err, "revoke key")
	if err := k.s.store.RevokeKey(ctx, account, id, k.s.now(), Change{Audit: k.s.audit(account, AuditKeyRevoked, id, nil)}); err != nil {
		return err
	}
	k.s.keys.clear()
	return nil
}

// Authenticate returns the principal of a key value. It fails with [ErrUnauthenticated] if the key
// isn't valid for any reason, and with another error if the store fails. The result may be as old as
// [KeyCacheTTL]. It is shared with other calls, so it must not be changed.
func (k Keys) Authenticate(ctx context.Context, value string) (_ *Principal, err error) {
	defer wrap(&err, "authenticate")
	if !plausibleKey(value) {
		return nil, ErrUnauthenticated
	}
	hash, now := sha256.Sum256([]byte(value)), k.s.now()
	key, ok := k.s.keys.get(hash)
	if !ok || !key.freshAt(now) {
		stored, err := k.s.store.KeyByHash(ctx, hash)
		if errors.Is(err, ErrNotFound) {
			return nil, ErrUnauthenticated
		}
		if err != nil {
			return nil, err
		}
		key = &cachedKey{Key: stored, principal: Principal{
			AccountID: stored.AccountID, KeyID: stored.ID, KeyName: stored.Name, Permissions: stored.Permissions,
		}, until: now.Add(KeyCacheTTL)}
		k.s.keys.put(hash, key, 1)
		if key.usable(now) {
			k.s.noteUse(KeyUse{AccountID: key.AccountID, ID: key.ID, At: now})
		}
	}
	if !key.usable(now) {
		return nil, ErrUnauthenticated
	}
	return &key.principal, nil
}

// Known returns the account of a valid key that this node authenticated before, without asking the store. Use it to
// assign a request to an account before there is capacity to authenticate it. The key may have been revoked since.
func (k Keys) Known(value string) (account ID, ok bool) {
	if !plausibleKey(value) {
		return "", false
	}
	key, ok := k.s.keys.get(sha256.Sum256([]byte(value)))
	if !ok || !key.usable(k.s.now()) {
		return "", false
	}
	return key.AccountID, true
}

// A cachedKey is a key that was used recently.
type cachedKey struct {
	Key
	principal Principal
	until     time.Time
}

// freshAt reports whether the key may be used without asking the store. If the clock was set back
// since the key was read, it may not: the entry would last too long.
func (c *cachedKey) freshAt(now time.Time) bool {
	return now.Before(c.until) && !now.Before(c.until.Add(-KeyCacheTTL))
}

// A KeyUse says when a key was used.
type KeyUse struct {
	AccountID ID
	ID        ID // of the key
	At        time.Time
}

// noteUse notes when a key was last used, until that is written. A busy key is noted once in [KeyCacheTTL], when it is
// read from the store. If there is no room, all notes are dropped, since they are only shown to people.
func (c *core) noteUse(use KeyUse) {
	if last, known := c.uses.get(use.ID); !known || use.At.After(last.At) {
		c.uses.put(use.ID, use, 1)
	}
}

// WriteUses writes when keys were last used ([Key.LastUsedAt]). [Service.Run] calls it every minute, and when it ends.
// If it fails, the next call writes the same uses. If the process is killed, unwritten uses are lost.
func (k Keys) WriteUses(ctx context.Context) (err error) {
	defer wrap(&err, "uses of keys")
	list := k.s.uses.clear()
	if len(list) == 0 {
		return nil
	}
	if err = k.s.store.UseKeys(ctx, list); err != nil {
		for _, use := range list {
			k.s.noteUse(use)
		}
	}
	return err
}

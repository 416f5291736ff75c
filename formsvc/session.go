package formsvc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"
)

// A Link signs a person in to an account once. Its token is returned when the link is created and
// passed to that person; the store has only its hash.
type Link struct {
	ID        ID
	AccountID ID
	Hash      [sha256.Size]byte // of the token
	CreatedAt time.Time
	ExpiresAt time.Time
}

// A Session is a person's signed-in session in the console of an account. It doesn't contain the
// secret value that comes with each request.
type Session struct {
	ID        ID // not secret: it is in the audit trail
	AccountID ID
	Hash      [sha256.Size]byte // of the value
	CreatedAt time.Time
	ExpiresAt time.Time
}

// inForce reports whether the session is active at that time.
func (s *Session) inForce(now time.Time) bool { return now.Before(s.ExpiresAt) }

// Sessions signs people in to the console of an account, and out; keys are for programs. A person exchanges a [Link]
// for a [Session]. The store has only the hashes of their secrets. It is safe for concurrent use.
type Sessions struct{ s *core }

// NewLink creates a link that signs a person in to the console of an account, once and until expires, which is
// [LinkTTL] from now. Its token can't be read again. It fails with [ErrNotFound] if there is no such account.
func (s Sessions) NewLink(ctx context.Context, account ID) (token string, expires time.Time, err error) {
	defer wrap(&err, "link")
	now := s.s.now()
	token, hash := newToken()
	link := Link{ID: s.s.NewID(now), AccountID: account, Hash: hash, CreatedAt: now, ExpiresAt: now.Add(LinkTTL)}
	change := Change{Audit: s.s.audit(account, AuditLinkCreated, link.ID, nil)}
	if err := s.s.store.CreateLink(ctx, link, change); err != nil {
		return "", time.Time{}, err
	}
	return token, link.ExpiresAt, nil
}

// SignIn exchanges the token of a link for a session and its value, which can't be read again. Only
// one call with the same token succeeds, even if calls run at once or on different nodes. It fails
// with [ErrUnauthenticated] if the link is unknown, used or expired; the error doesn't say which.
func (s Sessions) SignIn(ctx context.Context, token string) (session Session, value string, err error) {
	defer wrap(&err, "sign in")
	now := s.s.now()
	value, hash := newToken()
	session, err = s.s.store.RedeemLink(ctx, sha256.Sum256([]byte(token)), func(link *Link) (Session, Change, error) {
		if !now.Before(link.ExpiresAt) {
			return Session{}, Change{}, ErrUnauthenticated
		}
		session := Session{
			ID: s.s.NewID(now), AccountID: link.AccountID, Hash: hash, CreatedAt: now, ExpiresAt: now.Add(SessionTTL),
		}
		details := map[string]string{"link": string(link.ID)}
		return session, Change{Audit: s.s.audit(link.AccountID, AuditSignedIn, session.ID, details)}, nil
	})
	if errors.Is(err, ErrNotFound) {
		err = ErrUnauthenticated
	}
	if err != nil {
		return Session{}, "", err
	}
	return session, value, nil
}

// Authenticate returns the session that a value belongs to. It fails with [ErrUnauthenticated] if
// there is none or if it has expired, and with another error if the store fails. It always asks the
// store, so a session that ended on one node has ended on all.
func (s Sessions) Authenticate(ctx context.Context, value string) (_ Session, err error) {
	defer wrap(&err, "session")
	session, err := s.s.store.SessionByHash(ctx, sha256.Sum256([]byte(value)))
	if errors.Is(err, ErrNotFound) || err == nil && !session.inForce(s.s.now()) {
		err = ErrUnauthenticated
	}
	if err != nil {
		return Session{}, err
	}
	return session, nil
}

// SignOut ends the session that a value belongs to. If there is no such session, it returns nil.
func (s Sessions) SignOut(ctx context.Context, value string) (err error) {
	defer wrap(&err, "sign out")
	hash := sha256.Sum256([]byte(value))
	session, err := s.s.store.SessionByHash(ctx, hash)
	if err == nil {
		var change Change
		if session.inForce(s.s.now()) { // otherwise it had expired
			change.Audit = s.s.audit(session.AccountID, AuditSignedOut, session.ID, nil)
		}
		err = s.s.store.EndSession(ctx, session.AccountID, hash, change)
	}
	return ignoreNotFound(err)
}

// SignOutAll ends every session of an account and removes its unused links. It fails with
// [ErrNotFound] if there is no such account.
func (s Sessions) SignOutAll(ctx context.Context, account ID) (err error) {
	defer wrap(&err, "sign out")
	details := map[string]string{"sessions": "all"}
	change := Change{Audit: s.s.audit(account, AuditSignedOut, account, details)}
	return s.s.store.EndAllSessions(ctx, account, change)
}

// newToken returns a new secret and its hash. It has 260 random bits, so it can't be guessed, not even from a fast hash.
func newToken() (value string, hash [sha256.Size]byte) {
	value = rand.Text() + rand.Text()
	return value, sha256.Sum256([]byte(value))
}

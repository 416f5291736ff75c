package formsvc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Link signs a person in once. Its token is returned when the link is created and passed to that person; the store has
// only its hash.
type Link struct {
	ID        ID
	AccountID ID
	MemberID  ID                // "" for the account's operator, who may do everything
	Epoch     int64             // of the member
	Hash      [sha256.Size]byte // of the token
	Code      [sha256.Size]byte // of the other token, see [SignInCode]; zero for none
	CreatedAt time.Time
	ExpiresAt time.Time
}

// A Session is a person's signed-in session in the console of an account. It doesn't contain the
// secret value that comes with each request.
type Session struct {
	ID         ID // not secret: it is in the audit trail
	AccountID  ID
	MemberID   ID                // "" for the account's operator, who may do everything
	Epoch      int64             // of the member
	Hash       [sha256.Size]byte // of the value
	Way        string            // of signing in: see [SignedInByLink] and the next
	Device     string            // as the browser calls itself, at most 200 bytes
	CreatedAt  time.Time
	LastUsedAt time.Time // accurate to about ten minutes; zero for the operator
	ExpiresAt  time.Time
}

// The ways of signing in.
const (
	SignedInByLink     = "link"
	SignedInByPassword = "password"
	SignedInByProvider = "provider" // an OpenID provider; its name follows after a space
)

// inForce reports whether the session is active at that time.
func (s *Session) inForce(now time.Time) bool { return now.Before(s.ExpiresAt) }

// Sessions signs people in to the console of an account, and out; keys are for programs. The store has only the hashes
// of secrets. It is safe for concurrent use.
type Sessions struct{ s *core }

// NewLink creates a link that signs the operator of an account in to its console, once and until expires, which is
// [LinkTTL] from now. Its token can't be read again. It fails with [ErrNotFound] if there is no such account.
func (s Sessions) NewLink(ctx context.Context, account ID) (token string, expires time.Time, err error) {
	return s.newLink(ctx, Link{AccountID: account}, "")
}

// NewMemberLink does the same for a member, of whom it reads AccountID, ID and Epoch. browser is a secret of the browser that asked for the
// link, or "": there browser, a colon and the [SignInCode] are another token of the link.
func (s Sessions) NewMemberLink(ctx context.Context, m *Member, browser string) (token string, expires time.Time, err error) {
	return s.newLink(ctx, Link{AccountID: m.AccountID, MemberID: m.ID, Epoch: m.Epoch}, browser)
}

// SignInCode returns what a person reads where they opened a link, to type it where they asked for the link: eight letters and digits. Alone
// it is no secret.
func SignInCode(token string) string {
	sum := sha256.Sum256([]byte("code of " + token))
	return base32.StdEncoding.EncodeToString(sum[:5])
}

func (s Sessions) newLink(ctx context.Context, link Link, browser string) (token string, expires time.Time, err error) {
	defer wrap(&err, "link")
	now := s.s.now()
	token, link.Hash = newToken(link.MemberID)
	if browser != "" {
		link.Code = hashToken(browser + ":" + SignInCode(token))
	}
	link.ID, link.CreatedAt, link.ExpiresAt = s.s.NewID(now), now, now.Add(LinkTTL)
	change := Change{Audit: s.s.audit(link.AccountID, AuditLinkCreated, link.ID, ofMember(link.MemberID))}
	if err := s.s.store.CreateLink(ctx, link, change); err != nil {
		return "", time.Time{}, err
	}
	return token, link.ExpiresAt, nil
}

// ofMember returns the details of an audit entry about a link or session.
func ofMember(id ID) map[string]string {
	if id == "" {
		return nil
	}
	return map[string]string{"person": string(id)}
}

// SignIn exchanges the token of a link for a session and its value, which can't be read again. device is the browser's User-Agent. Only
// one call with the same token succeeds, even if calls run at once or on different nodes. It fails
// with [ErrUnauthenticated] if the link is unknown, used, replaced or expired; the error doesn't say which.
func (s Sessions) SignIn(ctx context.Context, token, device string) (session Session, value string, err error) {
	defer wrap(&err, "sign in")
	now := s.s.now()
	var invitation bool
	session, err = s.s.store.RedeemLink(ctx, hashToken(token), func(link *Link) (Session, Change, error) {
		if !now.Before(link.ExpiresAt) {
			return Session{}, Change{}, ErrUnauthenticated
		}
		session := s.s.session(link.AccountID, link.MemberID, link.Epoch, SignedInByLink, device)
		value, session.Hash = newToken(link.MemberID)
		invitation = link.ExpiresAt.Sub(link.CreatedAt) > LinkTTL
		details := map[string]string{"link": string(link.ID)}
		maps.Copy(details, ofMember(link.MemberID))
		return session, Change{Audit: s.s.audit(link.AccountID, AuditSignedIn, session.ID, details)}, nil
	})
	if err == nil && session.MemberID != "" {
		if err = s.arrive(ctx, &session, invitation); err != nil {
			_ = s.s.store.EndSession(ctx, session.AccountID, session.Hash, Change{}) // it isn't valid in any case
		}
	}
	if err != nil {
		return Session{}, "", unauthenticated(err)
	}
	return session, value, nil
}

// session returns a new session without its hash.
func (c *core) session(account, member ID, epoch int64, way, device string) Session {
	now := c.now()
	x := Session{
		ID: c.NewID(now), AccountID: account, MemberID: member, Epoch: epoch, Way: way, Device: actorText(device), CreatedAt: now, ExpiresAt: now.Add(SessionTTL),
	}
	if member != "" {
		x.LastUsedAt, x.ExpiresAt = now, now.Add(SessionIdleTTL)
	}
	return x
}

// arrive notes that the member of a session has signed in. It fails if the session isn't valid, or if the person with the invitation has
// joined in another way: a letter that is read later signs nobody in.
func (s Sessions) arrive(ctx context.Context, x *Session, invitation bool) error {
	_, err := Members(s).update(ctx, MemberKey{x.AccountID, x.MemberID}, "", func(m *Member) error {
		if m.Epoch != x.Epoch || m.JoinedAt.IsZero() && !x.CreatedAt.Before(m.InvitedUntil) || invitation && !m.JoinedAt.IsZero() {
			return ErrUnauthenticated
		}
		m.join(x.CreatedAt)
		m.SignedInAt = x.CreatedAt
		return nil
	})
	return err
}

// begin begins a session of a member, who has been authenticated at an epoch.
func (s Sessions) begin(ctx context.Context, m *Member, way, device string) (session Session, value string, err error) {
	session = s.s.session(m.AccountID, m.ID, m.Epoch, way, device)
	if err := s.arrive(ctx, &session, false); err != nil {
		return Session{}, "", unauthenticated(err)
	}
	value, session.Hash = newToken(m.ID)
	change := Change{Audit: s.s.audit(m.AccountID, AuditSignedIn, session.ID, ofMember(m.ID))}
	return session, value, s.s.store.CreateSession(ctx, session, change)
}

// SignInAs begins a session of the member with an identity ([Members.Identify]), and returns its value, which can't be read again.
func (s Sessions) SignInAs(ctx context.Context, id Identity, device string) (session Session, value string, err error) {
	defer wrap(&err, "sign in")
	m, err := Members(s).Identify(ctx, id)
	if err != nil {
		return Session{}, "", err
	}
	return s.begin(ctx, &m, SignedInByProvider+" "+id.Provider, device)
}

// Authenticate returns the session that a value belongs to, and its member, nil for the account's operator. It fails with
// [ErrUnauthenticated] if there is none or if it has expired, and with another error if the store fails. It always asks the
// store, so a session that ended on one node has ended on all. The use extends a member's session.
func (s Sessions) Authenticate(ctx context.Context, value string) (_ Session, _ *Member, err error) {
	session, m, err := s.Check(ctx, value)
	if now := s.s.now(); m != nil && now.Sub(session.LastUsedAt) >= sessionNoted {
		session.LastUsedAt, session.ExpiresAt = now, now.Add(SessionIdleTTL)
		if last := session.CreatedAt.Add(SessionMaxTTL); last.Before(session.ExpiresAt) {
			session.ExpiresAt = last
		}
		err = s.s.store.UseSession(ctx, session.Hash, session.LastUsedAt, session.ExpiresAt)
	}
	if err != nil {
		wrap(&err, "session")
		return Session{}, nil, unauthenticated(err)
	}
	return session, m, nil
}

// Check does the same without extending the session.
func (s Sessions) Check(ctx context.Context, value string) (_ Session, m *Member, err error) {
	defer wrap(&err, "session")
	session, err := s.s.store.SessionByHash(ctx, hashToken(value))
	if err == nil && !session.inForce(s.s.now()) {
		err = ErrNotFound
	}
	if err == nil && session.MemberID != "" {
		var member Member
		member, err = s.s.member(ctx, MemberQuery{AccountID: session.AccountID, ID: session.MemberID})
		if m = &member; err == nil && m.Epoch != session.Epoch {
			err = ErrNotFound
		}
	}
	if err != nil {
		return Session{}, nil, unauthenticated(err)
	}
	return session, m, nil
}

// sessionNoted is how often the use of a session is written.
const sessionNoted = 10 * time.Minute

// List returns the active sessions of a member, oldest first.
func (s Sessions) List(ctx context.Context, m *Member) (_ []Session, err error) {
	defer wrap(&err, "sessions")
	list, err := s.s.store.Sessions(ctx, m.Key())
	now := s.s.now()
	return slices.DeleteFunc(list, func(x Session) bool { return x.Epoch != m.Epoch || !x.inForce(now) }), err
}

// End ends one session of a member, or returns [ErrNotFound].
func (s Sessions) End(ctx context.Context, m *Member, id ID) (err error) {
	defer wrap(&err, "sign out")
	list, err := s.s.store.Sessions(ctx, m.Key())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(x Session) bool { return x.ID == id })
	if i < 0 {
		return ErrNotFound
	}
	return s.s.store.EndSession(ctx, m.AccountID, list[i].Hash, Change{Audit: s.s.audit(m.AccountID, AuditSignedOut, id, ofMember(m.ID))})
}

// SignOut ends the session that a value belongs to. If there is no such session, it returns nil.
func (s Sessions) SignOut(ctx context.Context, value string) (err error) {
	defer wrap(&err, "sign out")
	hash := hashToken(value)
	session, err := s.s.store.SessionByHash(ctx, hash)
	if err == nil {
		var change Change
		if session.inForce(s.s.now()) { // otherwise it had expired
			change.Audit = s.s.audit(session.AccountID, AuditSignedOut, session.ID, ofMember(session.MemberID))
		}
		err = s.s.store.EndSession(ctx, session.AccountID, hash, change)
	}
	return ignoreNotFound(err)
}

// SignOutAll ends every session of an account and removes its unused links, those of members too. It fails with
// [ErrNotFound] if there is no such account.
func (s Sessions) SignOutAll(ctx context.Context, account ID) (err error) {
	defer wrap(&err, "sign out")
	details := map[string]string{"sessions": "all"}
	change := Change{Audit: s.s.audit(account, AuditSignedOut, account, details)}
	return s.s.store.EndAllSessions(ctx, account, change)
}

// memberToken begins the secrets of members. Releases that know no members hash them in another way, so that beside this one they never
// take a member for the operator.
const memberToken = "m-"

// newToken returns a new secret and its hash. It has 260 random bits, so it can't be guessed, not even from a fast hash.
func newToken(member ID) (value string, hash [sha256.Size]byte) {
	value = rand.Text() + rand.Text()
	if member != "" {
		value = memberToken + value
	}
	return value, hashToken(value)
}

func hashToken(value string) [sha256.Size]byte {
	if strings.HasPrefix(value, memberToken) {
		value += " of a member"
	}
	return sha256.Sum256([]byte(value))
}

package formsvc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// A Member is a person who signs in to the console of an account. Programs with their own login have none.
type Member struct {
	ID        ID
	AccountID ID
	MemberInput

	Password string // its hash, see [Members.SetPassword]; "" for none
	Issuer   string // of an OpenID provider; "" for none
	Subject  string // the person's permanent identifier there
	// Epoch counts how often all sessions and links of the person ended. Those of an earlier epoch are not valid.
	Epoch        int64
	InvitedUntil time.Time // zero: the person has joined, or was removed
	JoinedAt     time.Time // zero: not yet
	SignedInAt   time.Time // the last time; zero: never
	RemovedAt    time.Time // zero: not removed. The record stays, so that [Accounts.ErasePerson] finds what the person did
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// MemberInput is the part of a member that an admin sets.
type MemberInput struct {
	Email string // unique among the members of the account, by [FoldEmail]
	Name  string // 1 to 100 characters; stands at what the person does
	Role  Role
}

// A MemberKey identifies a member.
type MemberKey struct{ AccountID, ID ID }

// Key returns the member's key.
func (m *Member) Key() MemberKey { return MemberKey{m.AccountID, m.ID} }

// A MemberQuery chooses members who were not removed. Zero fields match every member.
type MemberQuery struct {
	AccountID ID
	ID        ID
	Email     string // see [FoldEmail]
	Issuer    string // with Subject
	Subject   string
	Removed   bool // those who were removed, instead
}

// Finds reports whether the query chooses the member.
func (q *MemberQuery) Finds(m *Member) bool {
	return (q.AccountID == "" || q.AccountID == m.AccountID) && (q.ID == "" || q.ID == m.ID) &&
		(q.Email == "" || FoldEmail(q.Email) == FoldEmail(m.Email)) &&
		(q.Subject == "" || q.Subject == m.Subject && q.Issuer == m.Issuer) && q.Removed != m.RemovedAt.IsZero()
}

// CheckMember returns why a store must not add or change a member, or nil: [ErrConflict] if another one has the address or the
// identity, [ErrLimit] if there would be more than limit, and [ErrLastAdmin] if the account loses its last admin, or its last one who
// has joined. before is nil for a new member, limit is 0 for none, and others are the other members of the account who were not removed.
func CheckMember(before, after *Member, others []Member, limit int) error {
	admin := func(m *Member) bool { return m.Role == Admin && m.RemovedAt.IsZero() }
	if before != nil && admin(before) && !admin(after) && !slices.ContainsFunc(others, func(m Member) bool {
		return admin(&m) && (before.JoinedAt.IsZero() || !m.JoinedAt.IsZero())
	}) {
		return ErrLastAdmin
	}
	if before == nil && limit > 0 && len(others) >= limit {
		return ErrLimit
	}
	email, identity := MemberQuery{Email: after.Email}, MemberQuery{Issuer: after.Issuer, Subject: after.Subject}
	if after.RemovedAt.IsZero() && slices.ContainsFunc(others, func(m Member) bool {
		return email.Finds(&m) || after.Subject != "" && identity.Finds(&m)
	}) {
		return ErrConflict
	}
	return nil
}

// Members invites people to the console of an account, and changes and removes them. It is safe for concurrent use.
type Members struct{ s *core }

// Invite adds a person, who joins by signing in within [InvitationTTL], for example with the returned token of a [Link].
// It fails with a *[ValidationError], with [ErrConflict] if the account has a member with this address, and with a
// *[LimitError] if it has [MaxMembers].
func (s Members) Invite(ctx context.Context, account ID, in MemberInput) (_ Member, token string, err error) {
	defer wrap(&err, "invite")
	if err := in.check(); err != nil {
		return Member{}, "", err
	}
	now := s.s.now()
	m := Member{
		ID: s.s.NewID(now), AccountID: account, MemberInput: in, InvitedUntil: now.Add(InvitationTTL), Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	change := Change{Audit: s.s.audit(account, AuditMemberInvited, m.ID, map[string]string{"role": string(in.Role)}), Limit: MaxMembers}
	if err := s.s.store.CreateMember(ctx, m, change); err != nil {
		return Member{}, "", limited(err, "members", MaxMembers)
	}
	token, err = s.invitation(ctx, &m)
	return m, token, err
}

func (in *MemberInput) check() error {
	var v ValidationError
	if !validEmail(in.Email) {
		v.add("/email", "invalid_email", "must be an e-mail address")
	}
	v.checkTitle("/name", in.Name, 100)
	if len(in.Role.Permissions()) == 0 {
		v.add("/role", "invalid_value", "must be admin, editor, reviewer or viewer")
	}
	return v.err()
}

func (s Members) invitation(ctx context.Context, m *Member) (string, error) {
	token, hash := newToken(m.ID)
	link := Link{ID: s.s.NewID(m.UpdatedAt), AccountID: m.AccountID, MemberID: m.ID, Epoch: m.Epoch, Hash: hash, CreatedAt: m.UpdatedAt, ExpiresAt: m.InvitedUntil}
	return token, s.s.store.CreateLink(ctx, link, Change{})
}

// InviteAgain replaces the invitation of a person who hasn't joined. The earlier token is no longer valid. It fails with
// [ErrConflict] for a person who has joined.
func (s Members) InviteAgain(ctx context.Context, key MemberKey) (_ Member, token string, err error) {
	defer wrap(&err, "invite")
	m, err := s.update(ctx, key, AuditMemberInvited, func(m *Member) error {
		if !m.JoinedAt.IsZero() {
			return ErrConflict
		}
		m.Epoch, m.InvitedUntil = m.Epoch+1, s.s.now().Add(InvitationTTL)
		return nil
	})
	if err == nil {
		token, err = s.invitation(ctx, &m)
	}
	return m, token, err
}

// List returns the members of an account in the order of their invitations, without those who were removed.
func (s Members) List(ctx context.Context, account ID) (_ []Member, err error) {
	defer wrap(&err, "members")
	return s.s.store.Members(ctx, MemberQuery{AccountID: account})
}

// Removed returns the members of an account who were removed, for the names of actors in the audit trail.
func (s Members) Removed(ctx context.Context, account ID) (_ []Member, err error) {
	defer wrap(&err, "members")
	return s.s.store.Members(ctx, MemberQuery{AccountID: account, Removed: true})
}

// Get returns a member who was not removed, or [ErrNotFound].
func (s Members) Get(ctx context.Context, key MemberKey) (_ Member, err error) {
	defer wrap(&err, "member")
	return s.s.member(ctx, MemberQuery{AccountID: key.AccountID, ID: key.ID})
}

// ByEmail returns the member with this address, or [ErrNotFound].
func (s Members) ByEmail(ctx context.Context, account ID, email string) (_ Member, err error) {
	defer wrap(&err, "member")
	return s.s.member(ctx, MemberQuery{AccountID: account, Email: email})
}

// OfPerson returns the members with an address, of all accounts, who can sign in: they have joined, or their invitation hasn't expired.
func (s Members) OfPerson(ctx context.Context, email string) (_ []Member, err error) {
	defer wrap(&err, "members")
	if CheckText(email) != nil || email == "" { // "" would find everybody
		return nil, nil
	}
	list, err := s.s.store.Members(ctx, MemberQuery{Email: email})
	now := s.s.now()
	return slices.DeleteFunc(list, func(m Member) bool { return m.JoinedAt.IsZero() && !now.Before(m.InvitedUntil) }), err
}

// member returns the oldest member that a query finds. One that names nobody finds nobody.
func (c *core) member(ctx context.Context, q MemberQuery) (Member, error) {
	if (q.ID == "" || q.AccountID == "") && q.Email == "" && q.Subject == "" {
		return Member{}, ErrNotFound
	}
	list, err := c.store.Members(ctx, q)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Member{}, err
	}
	return list[0], nil
}

// Replace changes what an admin sets. The person's sessions go on with the new role. Another address ends an invitation, which went to
// the earlier one: see [Members.InviteAgain]. It fails with a *[ValidationError], with [ErrConflict] if another member has the
// address, and with [ErrLastAdmin].
func (s Members) Replace(ctx context.Context, key MemberKey, in MemberInput) (_ Member, err error) {
	defer wrap(&err, "member")
	if err := in.check(); err != nil {
		return Member{}, err
	}
	return s.update(ctx, key, AuditMemberUpdated, func(m *Member) error {
		if m.JoinedAt.IsZero() && FoldEmail(m.Email) != FoldEmail(in.Email) {
			m.Epoch++
		}
		m.MemberInput = in
		return nil
	})
}

// Remove removes a person: the sessions, links and ways of signing in end at once, on every node. The person's name stays at what
// they did until [Accounts.ErasePerson]. It fails with [ErrLastAdmin].
func (s Members) Remove(ctx context.Context, key MemberKey) (err error) {
	defer wrap(&err, "remove member")
	_, err = s.update(ctx, key, AuditMemberRemoved, func(m *Member) error {
		m.RemovedAt, m.InvitedUntil, m.Epoch = s.s.now(), time.Time{}, m.Epoch+1
		m.Password, m.Issuer, m.Subject = "", "", ""
		return nil
	})
	return err
}

// EndSessions ends all sessions and links of a person, on every node.
func (s Members) EndSessions(ctx context.Context, key MemberKey) (err error) {
	defer wrap(&err, "sign out")
	_, err = s.update(ctx, key, AuditSignedOut, func(m *Member) error {
		m.Epoch++
		return nil
	})
	return err
}

// update changes a member who was not removed. An empty action isn't audited.
func (s Members) update(ctx context.Context, key MemberKey, action AuditAction, edit func(*Member) error) (Member, error) {
	return s.s.store.UpdateMember(ctx, key, func(m *Member) (change Change, err error) {
		if !m.RemovedAt.IsZero() {
			return change, ErrNotFound
		}
		if err := edit(m); err != nil {
			return change, err
		}
		m.Version, m.UpdatedAt = m.Version+1, s.s.now()
		if action != "" {
			change.Audit = s.s.audit(key.AccountID, action, key.ID, map[string]string{"role": string(m.Role)})
		}
		return change, nil
	})
}

// An Identity is who a login of another service says that a person is: an OpenID provider, or a proxy.
type Identity struct {
	Issuer, Subject string // of an OpenID provider; both "" for a proxy
	Provider        string // a short name of that provider, for [Session].Way
	Email           string // "" unless that service has verified it
	Name            string
	Account         string // its name; "" means any that has the person as a member
	Role            Role   // "" leaves the member's
	Join            Role   // of a new member, who needs no invitation unless removed before; needs Account and Email. "" for nobody; Role replaces it
}

// Identify returns the member with an identity: the one who has the issuer and subject, or a person with the address
// who is invited. A proxy names members by their address. The member gets the identity's role, except the account's last admin.
// Identify fails with [ErrUnauthenticated] if there is none.
func (s Members) Identify(ctx context.Context, id Identity) (_ Member, err error) {
	defer wrap(&err, "identify")
	var account ID
	if id.Account != "" {
		a, err := s.s.store.AccountByName(ctx, id.Account)
		if err != nil {
			return Member{}, unauthenticated(err)
		}
		account = a.ID
	}
	m, err := s.known(ctx, account, &id)
	if errors.Is(err, ErrNotFound) && id.Join != "" && account != "" && id.Email != "" {
		m, err = s.joining(ctx, account, &id)
	}
	if err != nil {
		return Member{}, unauthenticated(err)
	}
	return s.settle(ctx, &m, &id)
}

// joining adds a member who needs no invitation. Those who were removed need one.
func (s Members) joining(ctx context.Context, account ID, id *Identity) (Member, error) {
	removed, err := s.s.store.Members(ctx, MemberQuery{AccountID: account, Email: id.Email, Removed: true})
	if err != nil || len(removed) > 0 {
		return Member{}, cmp.Or(err, ErrUnauthenticated)
	}
	in := MemberInput{id.Email, id.Name, id.Join}
	if in.check() != nil {
		in.Name = id.Email[:min(len(id.Email), 100)]
	}
	m, _, err := s.Invite(ctx, account, in)
	if errors.Is(err, ErrConflict) { // invited meanwhile, or linked to another identity
		m, err = s.known(ctx, account, id)
	}
	return m, err
}

// known finds the member with an identity.
func (s Members) known(ctx context.Context, account ID, id *Identity) (Member, error) {
	if id.Subject != "" {
		m, err := s.s.member(ctx, MemberQuery{AccountID: account, Issuer: id.Issuer, Subject: id.Subject})
		if !errors.Is(err, ErrNotFound) {
			return m, err
		}
	}
	if id.Email == "" {
		return Member{}, ErrNotFound
	}
	list, err := s.s.store.Members(ctx, MemberQuery{AccountID: account, Email: id.Email})
	now := s.s.now()
	i := slices.IndexFunc(list, func(m Member) bool {
		invited := m.JoinedAt.IsZero() && now.Before(m.InvitedUntil)
		return invited || id.Subject == "" && !m.JoinedAt.IsZero()
	})
	if err == nil && i < 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Member{}, err
	}
	return list[i], nil
}

// settle gives a member the identity, and its role. It writes only what changes.
func (s Members) settle(ctx context.Context, m *Member, id *Identity) (Member, error) {
	has := func(m *Member) bool { return id.Subject == "" || m.Subject == id.Subject && m.Issuer == id.Issuer }
	assigned := len(id.Role.Permissions()) > 0
	if !m.JoinedAt.IsZero() && has(m) && (!assigned || id.Role == m.Role) {
		return *m, nil
	}
	settled, err := s.update(ctx, m.Key(), AuditMemberUpdated, func(m *Member) error {
		if !has(m) && !m.JoinedAt.IsZero() { // meanwhile
			return ErrUnauthenticated
		}
		if id.Subject != "" {
			m.Issuer, m.Subject = id.Issuer, id.Subject
		}
		if assigned {
			m.Role = id.Role
		}
		m.join(s.s.now())
		return nil
	})
	if errors.Is(err, ErrLastAdmin) && assigned {
		return s.settle(ctx, m, &Identity{Issuer: id.Issuer, Subject: id.Subject})
	}
	return settled, unauthenticated(err)
}

// Connect gives a member an identity, by which they can sign in from now on. It fails with [ErrConflict] if they have one, or if another
// member of the account has this one.
func (s Members) Connect(ctx context.Context, key MemberKey, id Identity) (_ Member, err error) {
	defer wrap(&err, "connect")
	return s.update(ctx, key, AuditMemberUpdated, func(m *Member) error {
		if m.Subject != "" && (m.Subject != id.Subject || m.Issuer != id.Issuer) {
			return ErrConflict
		}
		m.Issuer, m.Subject = id.Issuer, id.Subject
		return nil
	})
}

// join notes that the person is here.
func (m *Member) join(now time.Time) {
	if m.JoinedAt.IsZero() {
		m.JoinedAt = now
	}
	m.InvitedUntil = time.Time{}
}

// unauthenticated hides which part of a login is unknown.
func unauthenticated(err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrLimit) {
		return ErrUnauthenticated
	}
	return err
}

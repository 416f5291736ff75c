package storagetest

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// person gives a member an address, an identity and a role that others may have.
func (m *model) person(x *formsvc.Member) {
	x.Email = oneOf(m, "email", append(addresses(), "eve2@example.com", "ada2@example.com")...)
	x.Issuer, x.Subject = oneOf(m, "issuer", "a", "b"), oneOf(m, "subject", "", "", "1", "2")
	x.Role = oneOf(m, "role", formsvc.Admin, formsvc.Viewer)
	x.JoinedAt, x.RemovedAt = oneOf(m, "joined", time.Time{}, m.now), oneOf(m, "removed", time.Time{}, time.Time{}, m.now)
}

func (m *model) addMember() {
	x := m.newMember(m.owner(m.accounts[0]))
	m.person(&x)
	if m.chance("taken", 12) {
		x.ID = m.oneMember().ID
	}
	m.members = append(m.members, x)
	change := m.change(formsvc.ResponseKey{AccountID: x.AccountID, ID: x.ID})
	change.Limit = oneOf(m, "limit", 0, 0, 4)
	m.do("CreateMember", func(s Store, _ int) (any, error) { return nil, s.CreateMember(m.ctx, x, change) })
	session := m.newSession(m.owner(m.accounts[0]))
	if session.MemberID = x.ID; len(m.sessions) > 0 && m.chance("taken", 10) {
		session.Hash, session.AccountID = one(m, "session", m.sessions).Hash, m.accounts[0]
	}
	m.sessions = append(m.sessions, session)
	change = m.change(formsvc.ResponseKey{AccountID: session.AccountID, ID: session.ID})
	m.do("CreateSession", func(s Store, _ int) (any, error) { return nil, s.CreateSession(m.ctx, session, change) })
}

// oneMember returns the key of a member, or of none.
func (m *model) oneMember() formsvc.MemberKey {
	x := one(m, "member", append(m.members, m.newMember(m.accounts[0])))
	return formsvc.MemberKey{AccountID: m.owner(x.AccountID), ID: x.ID}
}

func (m *model) updateMember() {
	key, as, by := m.oneMember(), m.newMember(""), int64(oneOf(m, "version", 1, 1, 0))
	m.person(&as)
	edit := decide(m, m.change(formsvc.ResponseKey{AccountID: key.AccountID, ID: key.ID}), func(x *formsvc.Member) {
		as.ID, as.AccountID, as.CreatedAt, as.Version = x.ID, x.AccountID, x.CreatedAt, x.Version+by
		*x = as
	})
	m.do("UpdateMember", func(s Store, _ int) (any, error) { return s.UpdateMember(m.ctx, key, edit) })
}

func (m *model) listMembers() {
	q := formsvc.MemberQuery{AccountID: m.owner(m.accounts[0]), Removed: m.chance("removed", 2)}
	switch m.number("by", 0, 2) {
	case 0:
		q.Email = oneOf(m, "email", addresses()...)
	case 1:
		q.Issuer, q.Subject = oneOf(m, "issuer", "a", "b"), oneOf(m, "subject", "1", "2")
	case 2:
		q.ID = oneOf(m, "ID", m.oneMember().ID, "nope")
	}
	if q.AccountID == "" { // any account, those of other histories too
		q.AccountID = m.accounts[1]
	}
	m.do("Members", func(s Store, _ int) (any, error) { return s.Members(m.ctx, q) })
	hash := one(m, "session", append(m.sessions, m.newSession(""))).Hash
	used := m.tick()
	m.do("UseSession", func(s Store, _ int) (any, error) { return nil, s.UseSession(m.ctx, hash, used, used.Add(time.Hour)) })
	key := m.oneMember()
	m.do("Sessions", func(s Store, _ int) (any, error) { return s.Sessions(m.ctx, key) })
}

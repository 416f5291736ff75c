package memory

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateMember implements [formsvc.Store].
func (s *Store) CreateMember(ctx context.Context, m formsvc.Member, change formsvc.Change) error {
	m, err := stored(&m)
	if err != nil {
		return err
	}
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.account(m.AccountID)
		if err == nil {
			err = formsvc.CheckMember(nil, &m, s.otherMembers(&m), change.Limit)
		}
		return change, err
	}, func() error {
		return s.members.add(m.ID, &m)
	})
}

// otherMembers returns the other members of the account who were not removed. The caller holds s.mu.
func (s *Store) otherMembers(m *formsvc.Member) []formsvc.Member {
	q := formsvc.MemberQuery{AccountID: m.AccountID}
	return list(&s.members, func(other *formsvc.Member) bool { return other.ID != m.ID && q.Finds(other) }, copyOf)
}

// UpdateMember implements [formsvc.Store].
func (s *Store) UpdateMember(
	ctx context.Context, key formsvc.MemberKey, decide func(*formsvc.Member) (formsvc.Change, error),
) (after formsvc.Member, err error) {
	var before *formsvc.Member
	err = s.write(ctx, func() (change formsvc.Change, err error) {
		before, err = s.members.first(func(m *formsvc.Member) bool { return m.ID == key.ID && m.AccountID == key.AccountID })
		if err != nil {
			return change, err
		}
		after = *before
		if change, err = decide(&after); err == nil {
			after, err = stored(&after)
		}
		if after.Version == before.Version {
			after = *before
		} else if err == nil {
			err = formsvc.CheckMember(before, &after, s.otherMembers(before), 0)
		}
		return change, err
	}, func() error {
		*before = after
		return nil
	})
	return after, err
}

// Members implements [formsvc.Store].
func (s *Store) Members(ctx context.Context, q formsvc.MemberQuery) ([]formsvc.Member, error) {
	if err := formsvc.CheckText(q.Email, q.Issuer, q.Subject); err != nil {
		return nil, err
	}
	return listed(ctx, s, &s.members, q.Finds, copyOf)
}

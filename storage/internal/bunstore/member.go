package bunstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

type memberRow struct {
	bun.BaseModel `bun:"table:formsvc_members,alias:b"`

	ID           ID `bun:",pk"`
	AccountID    ID
	Email        string
	Folded       string
	Name         string
	Role         string
	Password     string
	Issuer       string
	Subject      string
	Epoch        int64
	InvitedUntil int64
	JoinedAt     int64
	SignedInAt   int64
	RemovedAt    int64
	Version      int64
	CreatedAt    int64
	UpdatedAt    int64
}

// newMemberRow checks a member and returns the row.
func newMemberRow(m *formsvc.Member) (*memberRow, error) {
	return &memberRow{
		ID: ID(m.ID), AccountID: ID(m.AccountID), Email: m.Email, Folded: formsvc.FoldEmail(m.Email), Name: m.Name, Role: string(m.Role),
		Password: m.Password, Issuer: m.Issuer, Subject: m.Subject, Epoch: m.Epoch, InvitedUntil: micros(m.InvitedUntil), JoinedAt: micros(m.JoinedAt),
		SignedInAt: micros(m.SignedInAt), RemovedAt: micros(m.RemovedAt), Version: m.Version, CreatedAt: micros(m.CreatedAt), UpdatedAt: micros(m.UpdatedAt),
	}, errors.Join(checkIDs(m.ID), formsvc.CheckText(m.Email, m.Name, string(m.Role), m.Password, m.Issuer, m.Subject))
}

func (r *memberRow) member() formsvc.Member {
	return formsvc.Member{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), MemberInput: formsvc.MemberInput{Email: r.Email, Name: r.Name, Role: formsvc.Role(r.Role)},
		Password: r.Password, Issuer: r.Issuer, Subject: r.Subject, Epoch: r.Epoch, InvitedUntil: fromMicros(r.InvitedUntil), JoinedAt: fromMicros(r.JoinedAt),
		SignedInAt: fromMicros(r.SignedInAt), RemovedAt: fromMicros(r.RemovedAt), Version: r.Version, CreatedAt: fromMicros(r.CreatedAt), UpdatedAt: fromMicros(r.UpdatedAt),
	}
}

// CreateMember implements formsvc.MemberStore.
func (s *Store) CreateMember(ctx context.Context, m formsvc.Member, change formsvc.Change) error {
	row, err := newMemberRow(&m)
	if err != nil {
		return err
	}
	return s.write(ctx, ids(m.AccountID), &change, func(ctx context.Context, c *Tx) error {
		others, err := s.lockMembers(ctx, c, row.AccountID)
		if err := cmp.Or(err, formsvc.CheckMember(nil, &m, others, change.Limit)); err != nil {
			return err
		}
		_, err = s.build.NewInsert().Conn(c).Model(row).Exec(ctx)
		return err
	})
}

// lockMembers locks an account, so that concurrent changes of its members wait for each other, and returns the members who were not removed.
func (s *Store) lockMembers(ctx context.Context, c *Tx, account ID) ([]formsvc.Member, error) {
	if _, err := lockRow[accountRow](ctx, s, c, "id = ?", account); err != nil {
		return nil, err
	}
	var rows []memberRow
	err := s.build.NewSelect().Conn(c).Model(&rows).Where("account_id = ? AND removed_at = ?", account, Never).Scan(ctx)
	return records(rows, (*memberRow).member), err
}

// UpdateMember implements formsvc.MemberStore.
func (s *Store) UpdateMember(
	ctx context.Context, key formsvc.MemberKey, decide func(*formsvc.Member) (formsvc.Change, error),
) (after formsvc.Member, err error) {
	err = s.write(ctx, ids(key.AccountID, key.ID), nil, func(ctx context.Context, c *Tx) error {
		others, err := s.lockMembers(ctx, c, ID(key.AccountID))
		if err != nil {
			return err
		}
		row, err := lockRow[memberRow](ctx, s, c, "account_id = ? AND id = ?", ID(key.AccountID), ID(key.ID))
		if err != nil {
			return err
		}
		before := row.member()
		after = before
		change, err := decide(&after)
		if err := cmp.Or(err, checkChange(&change)); err != nil {
			return err
		}
		others = slices.DeleteFunc(others, func(m formsvc.Member) bool { return m.ID == before.ID })
		if after.Version == before.Version {
			after = before
		} else if changed, err := newMemberRow(&after); err != nil {
			return err
		} else if err := formsvc.CheckMember(&before, &after, others, 0); err != nil {
			return err
		} else if _, err := s.build.NewUpdate().Conn(c).Model(changed).ExcludeColumn("id", "account_id", "created_at").WherePK().Exec(ctx); err != nil {
			return err
		} else {
			after = changed.member()
		}
		return s.apply(ctx, c, &change)
	})
	return after, err
}

// Members implements formsvc.MemberStore.
func (s *Store) Members(ctx context.Context, q formsvc.MemberQuery) ([]formsvc.Member, error) {
	if err := cmp.Or(s.ready(ctx), formsvc.CheckText(q.Email, q.Issuer, q.Subject)); err != nil {
		return nil, err
	}
	var rows []memberRow
	sel := s.build.NewSelect().Conn(s.read).Model(&rows).Order("id")
	for name, value := range map[string]formsvc.ID{"account_id": q.AccountID, "id": q.ID} {
		if value != "" {
			sel = sel.Where(name+" = ?", ID(value))
		}
	}
	if q.Email != "" {
		sel = sel.Where("folded = ?", formsvc.FoldEmail(q.Email))
	}
	if q.Subject != "" {
		// The database uses the index only if the text of the query has its condition.
		sel = sel.Where("subject = ? AND subject <> '' AND issuer = ?", q.Subject, q.Issuer)
	}
	if q.Removed {
		sel = sel.Where("removed_at <> ?", Never)
	} else {
		sel = sel.Where("removed_at = ?", Never)
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, s.backend.Classify(err)
	}
	return records(rows, (*memberRow).member), nil
}

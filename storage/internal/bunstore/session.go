package bunstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// SignColumns are the columns that links and sessions share.
type SignColumns struct {
	ID        ID `bun:",pk"`
	AccountID ID
	MemberID  ID
	Epoch     int64
	Hash      []byte
	CreatedAt int64
	ExpiresAt int64
}

type linkRow struct {
	bun.BaseModel `bun:"table:formsvc_links,alias:l"`
	SignColumns

	Code []byte
}

type sessionRow struct {
	bun.BaseModel `bun:"table:formsvc_sessions,alias:x"`
	SignColumns

	Way    string
	Device string
	UsedAt int64
}

func newLinkRow(l *formsvc.Link) *linkRow {
	row := &linkRow{SignColumns: SignColumns{
		ID: ID(l.ID), AccountID: ID(l.AccountID), MemberID: ID(l.MemberID), Epoch: l.Epoch, Hash: l.Hash[:],
		CreatedAt: micros(l.CreatedAt), ExpiresAt: micros(l.ExpiresAt),
	}}
	if l.Code != [sha256.Size]byte{} {
		row.Code = l.Code[:]
	}
	return row
}

func (r *linkRow) link() formsvc.Link {
	l := formsvc.Link{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), MemberID: formsvc.ID(r.MemberID), Epoch: r.Epoch,
		CreatedAt: fromMicros(r.CreatedAt), ExpiresAt: fromMicros(r.ExpiresAt),
	}
	copy(l.Hash[:], r.Hash)
	copy(l.Code[:], r.Code)
	return l
}

// newSessionRow checks a session and returns its row.
func newSessionRow(x *formsvc.Session) (*sessionRow, error) {
	// The member is optional.
	return &sessionRow{
		SignColumns: SignColumns{
			ID: ID(x.ID), AccountID: ID(x.AccountID), MemberID: ID(x.MemberID), Epoch: x.Epoch, Hash: x.Hash[:],
			CreatedAt: micros(x.CreatedAt), ExpiresAt: micros(x.ExpiresAt),
		},
		Way: x.Way, Device: x.Device, UsedAt: micros(x.LastUsedAt),
	}, errors.Join(checkIDs(x.ID, cmp.Or(x.MemberID, x.ID)), formsvc.CheckText(x.Way, x.Device))
}

func (r *sessionRow) session() formsvc.Session {
	x := formsvc.Session{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID), MemberID: formsvc.ID(r.MemberID), Epoch: r.Epoch, Way: r.Way, Device: r.Device,
		CreatedAt: fromMicros(r.CreatedAt), LastUsedAt: fromMicros(r.UsedAt), ExpiresAt: fromMicros(r.ExpiresAt),
	}
	copy(x.Hash[:], r.Hash)
	return x
}

// CreateLink implements formsvc.SessionStore.
func (s *Store) CreateLink(ctx context.Context, link formsvc.Link, change formsvc.Change) error {
	if err := checkIDs(link.ID, cmp.Or(link.MemberID, link.ID)); err != nil {
		return err
	}
	row := newLinkRow(&link)
	return s.write(ctx, ids(link.AccountID), &change, func(ctx context.Context, c *Tx) error {
		_, err := s.build.NewInsert().Conn(c).Model(row).Exec(ctx)
		return err
	})
}

// RedeemLink implements formsvc.SessionStore. A second call with the same link waits for
// the row's lock and then doesn't find the row.
func (s *Store) RedeemLink(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Link) (formsvc.Session, formsvc.Change, error),
) (formsvc.Session, error) {
	var row *sessionRow
	err := s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		used, err := lockRow[linkRow](ctx, s, c, "hash = ? OR code = ?", hash[:], hash[:])
		if err != nil {
			return err
		}
		session, change, err := decide(new(used.link()))
		if err := cmp.Or(err, checkChange(&change)); err != nil {
			return err
		}
		session.AccountID, session.MemberID = formsvc.ID(used.AccountID), formsvc.ID(used.MemberID)
		if row, err = newSessionRow(&session); err != nil {
			return err
		}
		if _, err := s.build.NewDelete().Conn(c).Model(&used).WherePK().Exec(ctx); err != nil {
			return err
		}
		if _, err := s.build.NewInsert().Conn(c).Model(row).Exec(ctx); err != nil {
			return err
		}
		return s.apply(ctx, c, &change)
	})
	if err != nil {
		return formsvc.Session{}, err
	}
	return row.session(), nil
}

// CreateSession implements formsvc.SessionStore.
func (s *Store) CreateSession(ctx context.Context, session formsvc.Session, change formsvc.Change) error {
	row, err := newSessionRow(&session)
	if err != nil {
		return err
	}
	return s.write(ctx, ids(session.AccountID), &change, func(ctx context.Context, c *Tx) error {
		_, err := s.build.NewInsert().Conn(c).Model(row).Exec(ctx)
		return err
	})
}

// UseSession implements formsvc.SessionStore.
func (s *Store) UseSession(ctx context.Context, hash [sha256.Size]byte, used, expires time.Time) error {
	return s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		return changedOne(s.build.NewUpdate().Conn(c).Model((*sessionRow)(nil)).Set("used_at = ?", micros(used)).
			Set("expires_at = ?", micros(expires)).Where("hash = ?", hash[:]).Exec(ctx))
	})
}

// Sessions implements formsvc.SessionStore.
func (s *Store) Sessions(ctx context.Context, key formsvc.MemberKey) ([]formsvc.Session, error) {
	return all(ctx, s, (*sessionRow).session, "account_id = ? AND member_id = ?", ID(key.AccountID), ID(key.ID))
}

// SessionByHash implements formsvc.SessionStore.
func (s *Store) SessionByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Session, error) {
	return one(ctx, s, (*sessionRow).session, "hash = ?", hash[:])
}

const (
	deleteLinks    = "DELETE FROM formsvc_links WHERE account_id = $1"
	deleteSessions = "DELETE FROM formsvc_sessions WHERE account_id = $1"
	deleteSession  = deleteSessions + " AND hash = $2"
)

// EndSession implements formsvc.SessionStore.
func (s *Store) EndSession(ctx context.Context, account formsvc.ID, hash [sha256.Size]byte, change formsvc.Change) error {
	return s.write(ctx, ids(account), &change, func(ctx context.Context, c *Tx) error {
		return changedOne(c.ExecContext(ctx, deleteSession, s.dialect.arg(account), hash[:]))
	})
}

// EndAllSessions implements formsvc.SessionStore. It deletes links first: this waits for a
// link that is being redeemed, and the next statement finds its session.
func (s *Store) EndAllSessions(ctx context.Context, account formsvc.ID, change formsvc.Change) error {
	return s.write(ctx, ids(account), &change, func(ctx context.Context, c *Tx) error {
		known, err := s.build.NewSelect().Conn(c).Model((*accountRow)(nil)).Where("id = ?", ID(account)).Exists(ctx)
		if err != nil {
			return err
		}
		if !known {
			return formsvc.ErrNotFound
		}
		for _, statement := range []string{deleteLinks, deleteSessions} {
			if _, err := c.ExecContext(ctx, statement, s.dialect.arg(account)); err != nil {
				return err
			}
		}
		return nil
	})
}

package bunstore

import (
	"cmp"
	"context"
	"crypto/sha256"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// signRow is the row of a link, or of a session, which has the same fields.
type signRow struct {
	bun.BaseModel `bun:"table:formsvc_links,alias:l"`

	ID        ID `bun:",pk"`
	AccountID ID
	Hash      []byte
	CreatedAt int64
	ExpiresAt int64
}

func newSignRow(l *formsvc.Link) *signRow {
	return &signRow{
		ID: ID(l.ID), AccountID: ID(l.AccountID), Hash: l.Hash[:],
		CreatedAt: micros(l.CreatedAt), ExpiresAt: micros(l.ExpiresAt),
	}
}

func (r *signRow) link() formsvc.Link {
	l := formsvc.Link{
		ID: formsvc.ID(r.ID), AccountID: formsvc.ID(r.AccountID),
		CreatedAt: fromMicros(r.CreatedAt), ExpiresAt: fromMicros(r.ExpiresAt),
	}
	copy(l.Hash[:], r.Hash)
	return l
}

func (r *signRow) session() formsvc.Session { return formsvc.Session(r.link()) }

// CreateLink implements formsvc.SessionStore.
func (s *Store) CreateLink(ctx context.Context, link formsvc.Link, change formsvc.Change) error {
	if err := checkIDs(link.ID); err != nil {
		return err
	}
	row := newSignRow(&link)
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
	var row *signRow
	err := s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		used, err := lockRow[signRow](ctx, s, c, "hash = ?", hash[:])
		if err != nil {
			return err
		}
		session, change, err := decide(new(used.link()))
		if err := cmp.Or(err, checkIDs(session.ID), checkChange(&change)); err != nil {
			return err
		}
		if _, err := s.build.NewDelete().Conn(c).Model(&used).WherePK().Exec(ctx); err != nil {
			return err
		}
		session.AccountID = formsvc.ID(used.AccountID)
		row = newSignRow((*formsvc.Link)(&session))
		if _, err := s.build.NewInsert().Conn(c).Model(row).ModelTableExpr("formsvc_sessions").Exec(ctx); err != nil {
			return err
		}
		return s.apply(ctx, c, &change)
	})
	if err != nil {
		return formsvc.Session{}, err
	}
	return row.session(), nil
}

// SessionByHash implements formsvc.SessionStore.
func (s *Store) SessionByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Session, error) {
	if err := s.ready(ctx); err != nil {
		return formsvc.Session{}, err
	}
	var row signRow
	err := s.build.NewSelect().Conn(s.read).Model(&row).ModelTableExpr("formsvc_sessions AS l").Where("hash = ?", hash[:]).Scan(ctx)
	if err != nil {
		return formsvc.Session{}, s.notFound(err)
	}
	return row.session(), nil
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

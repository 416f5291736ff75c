package memory

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateLink implements [formsvc.Store].
func (s *Store) CreateLink(ctx context.Context, link formsvc.Link, change formsvc.Change) error {
	link, err := stored(&link)
	if err != nil {
		return err
	}
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.account(link.AccountID)
		if _, taken := s.links.first(func(l *formsvc.Link) bool {
			return l.Hash == link.Hash || l.Code == link.Code && link.Code != [sha256.Size]byte{}
		}); err == nil && taken == nil {
			err = formsvc.ErrConflict
		}
		return change, err
	}, func() error {
		return s.links.add(link.ID, &link)
	})
}

// RedeemLink implements [formsvc.Store].
func (s *Store) RedeemLink(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Link) (formsvc.Session, formsvc.Change, error),
) (session formsvc.Session, err error) {
	var link *formsvc.Link
	err = s.write(ctx, func() (change formsvc.Change, err error) {
		if link, err = s.link(hash); err != nil {
			return change, err
		}
		if session, change, err = decide(new(*link)); err == nil {
			session, err = stored(&session)
		}
		if _, taken := s.session(session.Hash); err == nil && taken == nil {
			err = formsvc.ErrConflict
		}
		return change, err
	}, func() error {
		session.AccountID, session.MemberID = link.AccountID, link.MemberID
		if err := s.sessions.add(session.ID, new(session)); err != nil {
			return err
		}
		s.links.remove(link.ID)
		return nil
	})
	return session, err
}

// CreateSession implements [formsvc.Store].
func (s *Store) CreateSession(ctx context.Context, session formsvc.Session, change formsvc.Change) error {
	session, err := stored(&session)
	if err != nil {
		return err
	}
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.account(session.AccountID)
		if _, taken := s.session(session.Hash); err == nil && taken == nil {
			err = formsvc.ErrConflict
		}
		return change, err
	}, func() error {
		return s.sessions.add(session.ID, &session)
	})
}

// UseSession implements [formsvc.Store].
func (s *Store) UseSession(ctx context.Context, hash [sha256.Size]byte, used, expires time.Time) error {
	_, err := read(ctx, s, s.session, hash, func(x *formsvc.Session) error {
		x.LastUsedAt, x.ExpiresAt = kept(used), kept(expires)
		return nil
	})
	return err
}

// Sessions implements [formsvc.Store].
func (s *Store) Sessions(ctx context.Context, key formsvc.MemberKey) ([]formsvc.Session, error) {
	return listed(ctx, s, &s.sessions, func(x *formsvc.Session) bool {
		return x.AccountID == key.AccountID && x.MemberID == key.ID && key.ID != ""
	}, copyOf)
}

// SessionByHash implements [formsvc.Store].
func (s *Store) SessionByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Session, error) {
	return read(ctx, s, s.session, hash, func(x *formsvc.Session) formsvc.Session { return *x })
}

// EndSession implements [formsvc.Store].
func (s *Store) EndSession(ctx context.Context, account formsvc.ID, hash [sha256.Size]byte, change formsvc.Change) error {
	var session *formsvc.Session
	return s.write(ctx, func() (_ formsvc.Change, err error) {
		if session, err = s.session(hash); err == nil && session.AccountID != account {
			err = formsvc.ErrNotFound
		}
		return change, err
	}, func() error {
		s.sessions.remove(session.ID)
		return nil
	})
}

// EndAllSessions implements [formsvc.Store].
func (s *Store) EndAllSessions(ctx context.Context, account formsvc.ID, change formsvc.Change) error {
	return s.write(ctx, func() (formsvc.Change, error) {
		_, err := s.account(account)
		return change, err
	}, func() error {
		pruneTable(&s.links, len(s.links.ids), func(l *formsvc.Link) bool { return l.AccountID == account })
		pruneTable(&s.sessions, len(s.sessions.ids), func(x *formsvc.Session) bool { return x.AccountID == account })
		return nil
	})
}

// link returns the link with that hash or code. The caller holds s.mu.
func (s *Store) link(hash [sha256.Size]byte) (*formsvc.Link, error) {
	return s.links.first(func(link *formsvc.Link) bool {
		return link.Hash == hash || link.Code == hash && hash != [sha256.Size]byte{}
	})
}

// session returns the session with that hash. The caller holds s.mu.
func (s *Store) session(hash [sha256.Size]byte) (*formsvc.Session, error) {
	return s.sessions.first(func(session *formsvc.Session) bool { return session.Hash == hash })
}

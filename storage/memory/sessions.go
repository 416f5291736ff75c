package memory

import (
	"context"
	"crypto/sha256"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateLink implements [formsvc.SessionStore].
func (s *Store) CreateLink(ctx context.Context, link formsvc.Link, change formsvc.Change) error {
	if err := formsvc.CheckText(string(link.ID), string(link.AccountID)); err != nil {
		return err
	}
	return s.write(ctx, &change, func() error {
		if _, err := s.account(link.AccountID); err != nil {
			return err
		}
		if s.link(link.Hash) != nil {
			return formsvc.ErrConflict
		}
		return nil
	}, func() error {
		link.CreatedAt, link.ExpiresAt = kept(link.CreatedAt), kept(link.ExpiresAt)
		return s.links.add(link.ID, &link)
	})
}

// RedeemLink implements [formsvc.SessionStore].
func (s *Store) RedeemLink(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Link) (formsvc.Session, formsvc.Change, error),
) (formsvc.Session, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Session{}, err
	}
	defer s.mu.Unlock()
	link := s.link(hash)
	if link == nil {
		return formsvc.Session{}, formsvc.ErrNotFound
	}
	session, change, err := decide(new(*link))
	if err == nil {
		err = formsvc.CheckText(string(session.ID))
	}
	if err != nil {
		return formsvc.Session{}, err
	}
	if s.session(session.Hash) != nil {
		return formsvc.Session{}, formsvc.ErrConflict
	}
	if err := s.admit(&change); err != nil {
		return formsvc.Session{}, err
	}
	session.AccountID = link.AccountID
	session.CreatedAt, session.ExpiresAt = kept(session.CreatedAt), kept(session.ExpiresAt)
	if err := s.sessions.add(session.ID, new(session)); err != nil {
		return formsvc.Session{}, err
	}
	s.links.remove(link.ID)
	s.apply(&change)
	return session, nil
}

// SessionByHash implements [formsvc.SessionStore].
func (s *Store) SessionByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Session, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Session{}, err
	}
	defer s.mu.Unlock()
	session := s.session(hash)
	if session == nil {
		return formsvc.Session{}, formsvc.ErrNotFound
	}
	return *session, nil
}

// EndSession implements [formsvc.SessionStore].
func (s *Store) EndSession(ctx context.Context, account formsvc.ID, hash [sha256.Size]byte, change formsvc.Change) error {
	return s.write(ctx, &change, func() error {
		if session := s.session(hash); session == nil || session.AccountID != account {
			return formsvc.ErrNotFound
		}
		return nil
	}, func() error {
		s.sessions.remove(s.session(hash).ID)
		return nil
	})
}

// EndAllSessions implements [formsvc.SessionStore].
func (s *Store) EndAllSessions(ctx context.Context, account formsvc.ID, change formsvc.Change) error {
	return s.write(ctx, &change, func() error {
		_, err := s.account(account)
		return err
	}, func() error {
		pruneTable(&s.links, len(s.links.ids), func(l *formsvc.Link) bool { return l.AccountID == account })
		pruneTable(&s.sessions, len(s.sessions.ids), func(x *formsvc.Session) bool { return x.AccountID == account })
		return nil
	})
}

// link returns the link with that hash, or nil. The caller holds s.mu.
func (s *Store) link(hash [sha256.Size]byte) *formsvc.Link {
	for _, link := range s.links.rows {
		if link.Hash == hash {
			return link
		}
	}
	return nil
}

// session returns the session with that hash, or nil. The caller holds s.mu.
func (s *Store) session(hash [sha256.Size]byte) *formsvc.Session {
	for _, session := range s.sessions.rows {
		if session.Hash == hash {
			return session
		}
	}
	return nil
}

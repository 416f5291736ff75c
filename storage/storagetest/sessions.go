package storagetest

import (
	"errors"

	"github.com/formsvc/toolkit/formsvc"
)

func (w *world) newLink(account formsvc.ID) formsvc.Link {
	id, at := w.next()
	return formsvc.Link{
		ID: id, AccountID: account, Hash: keyHash("link " + id), CreatedAt: at, ExpiresAt: at.Add(formsvc.LinkTTL),
	}
}

func (w *world) newSession(account formsvc.ID) formsvc.Session {
	id, at := w.next()
	return formsvc.Session{
		ID: id, AccountID: account, Hash: keyHash("session " + id), CreatedAt: at, ExpiresAt: at.Add(formsvc.SessionTTL),
	}
}

func (w *world) addLink(account formsvc.ID) formsvc.Link {
	w.Helper()
	link := w.newLink(account)
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, formsvc.Change{}))
	return link
}

// redeem redeems a link for a session.
func (w *world) redeem(link *formsvc.Link, session formsvc.Session) (formsvc.Session, error) {
	return w.store.RedeemLink(w.ctx, link.Hash, func(*formsvc.Link) (formsvc.Session, formsvc.Change, error) {
		return session, formsvc.Change{}, nil
	})
}

// wantNoSessions fails the test if one of the sessions exists.
func (w *world) wantNoSessions(what string, sessions ...formsvc.Session) {
	w.Helper()
	for _, gone := range sessions {
		_, err := w.store.SessionByHash(w.ctx, gone.Hash)
		w.wantError("SessionByHash after "+what, err, formsvc.ErrNotFound)
	}
}

// wantNoLinks fails the test if one of the links can be redeemed.
func (w *world) wantNoLinks(what string, links ...formsvc.Link) {
	w.Helper()
	for _, gone := range links {
		_, err := w.redeem(&gone, w.newSession(gone.AccountID))
		w.wantError("RedeemLink after "+what, err, formsvc.ErrNotFound)
	}
}

// testEndBesideRedeem redeems links while all sessions end. No session is left, whichever is first.
func testEndBesideRedeem(w *world) {
	a := w.addAccount()
	for range 20 {
		links, sessions := make([]formsvc.Link, 4), make([]formsvc.Session, 4)
		for i := range links {
			links[i], sessions[i] = w.addLink(a.ID), w.newSession(a.ID)
		}
		w.together(len(links)+1, func(i int) {
			if i == len(links) {
				w.check("EndSessions", w.store.EndSessions(w.ctx, formsvc.SessionQuery{AccountID: a.ID}, formsvc.Change{}))
			} else if _, err := w.redeem(&links[i], sessions[i]); err != nil && !errors.Is(err, formsvc.ErrNotFound) {
				w.Errorf("RedeemLink beside EndSessions: %v", err)
			}
		})
		w.wantNoSessions("EndSessions beside RedeemLink", sessions...)
		w.wantNoLinks("EndSessions beside RedeemLink", links...)
	}
}

package storagetest

import (
	"context"
	"crypto/sha256"

	"github.com/formsvc/toolkit/formsvc"
)

// sessionCalls are all calls of a SessionStore.
func sessionCalls() []call {
	account := []part{accountPart}
	return []call{
		{name: "CreateLink", uses: account, do: (*world).callCreateLink},
		{name: "RedeemLink", do: (*world).callRedeemLink},
		{name: "SessionByHash", do: (*world).callSessionByHash},
		{name: "EndSession", do: (*world).callEndSession},
		{name: "EndSessions", uses: account, do: (*world).callEndSessions},
		{name: "PruneSessions", do: (*world).callPruneSessions},
	}
}

// targetHash is the hash of a link, and of a session, of the account of every target.
func targetHash(account formsvc.ID) [sha256.Size]byte { return keyHash("target of " + account) }

// addTargetSession adds the session of a target, and another link with the hash of the
// one that it was made of.
func (w *world) addTargetSession(account formsvc.ID) {
	w.Helper()
	link, session := w.newLink(account), w.newSession(account)
	link.Hash, session.Hash = targetHash(account), targetHash(account)
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, formsvc.Change{}))
	_, err := w.redeem(&link, session)
	w.must("RedeemLink", err)
	link.ID = w.nextID()
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, formsvc.Change{}))
}

func (w *world) callCreateLink(ctx context.Context, at *target) (int, error) {
	return 0, w.store.CreateLink(ctx, w.newLink(at[accountPart]), formsvc.Change{})
}

func (w *world) callRedeemLink(ctx context.Context, at *target) (int, error) {
	_, err := w.store.RedeemLink(ctx, targetHash(at[accountPart]),
		func(link *formsvc.Link) (formsvc.Session, formsvc.Change, error) {
			return w.newSession(link.AccountID), formsvc.Change{}, nil
		})
	return 0, err
}

func (w *world) callSessionByHash(ctx context.Context, at *target) (int, error) {
	_, err := w.store.SessionByHash(ctx, targetHash(at[accountPart]))
	return 0, err
}

func (w *world) callEndSession(ctx context.Context, at *target) (int, error) {
	return 0, w.store.EndSession(ctx, targetHash(at[accountPart]), nil)
}

func (w *world) callEndSessions(ctx context.Context, at *target) (int, error) {
	return 0, w.store.EndSessions(ctx, at[accountPart], formsvc.Change{})
}

func (w *world) callPruneSessions(ctx context.Context, _ *target) (int, error) {
	return w.store.PruneSessions(ctx, start(), 10)
}

package storagetest

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Calls about records of an account: sessions, quotas and idempotency records.

// sessionCalls returns all calls of a SessionStore.
func sessionCalls() []call {
	account := []part{accountPart}
	return []call{
		{name: "CreateLink", uses: account, do: (*world).callCreateLink},
		{name: "RedeemLink", do: (*world).callRedeemLink},
		{name: "SessionByHash", do: (*world).callSessionByHash},
		{name: "EndSession of one", do: (*world).callEndSession},
		{name: "EndSessions", uses: account, do: (*world).callEndSessions},
		{name: "Prune, sessions", do: (*world).callPruneSessions},
	}
}

// targetHash returns the hash of a link and a session of each target's account.
func targetHash(account formsvc.ID) [sha256.Size]byte { return keyHash("target of " + account) }

// addTargetSession adds the session of a target, and another link with the hash of the link that it came from.
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
	return 0, endSession(ctx, w.store, at[accountPart], targetHash(at[accountPart]))
}

func (w *world) callEndSessions(ctx context.Context, at *target) (int, error) {
	return 0, w.store.EndSessions(ctx, formsvc.SessionQuery{AccountID: at[accountPart]}, formsvc.Change{})
}

func (w *world) callPruneSessions(ctx context.Context, _ *target) (int, error) {
	return w.store.Prune(ctx, formsvc.PruneSessions, start(), 10)
}

// quotaCalls returns all calls of a QuotaStore.
func quotaCalls() []call {
	return []call{
		{name: "TakeQuota", do: (*world).callTakeQuota},
		{name: "ReturnQuota", do: (*world).callReturnQuota},
		{name: "QuotaUse", do: (*world).callQuotaUse},
		{name: "Prune, quota", do: (*world).callPruneQuota},
	}
}

func (w *world) callTakeQuota(ctx context.Context, at *target) (int, error) {
	_, err := w.store.TakeQuota(ctx, take(at[keyPart], 1000, 1, 0))
	return 0, err
}

func (w *world) callReturnQuota(ctx context.Context, at *target) (int, error) {
	return 0, w.store.ReturnQuota(ctx, []formsvc.QuotaReturn{{Subject: at[keyPart], Start: start(), N: 1}})
}

func (w *world) callQuotaUse(ctx context.Context, at *target) (int, error) {
	list, err := w.store.QuotaUse(ctx, at[keyPart], time.Time{})
	return len(list), err
}

func (w *world) callPruneQuota(ctx context.Context, _ *target) (int, error) {
	return w.store.Prune(ctx, formsvc.PruneQuota, time.Unix(0, 0), 10)
}

func idempotencyCalls() []call {
	return []call{
		{name: "Note, remember", do: (*world).callRemember},
		{name: "Recall", uses: []part{accountPart}, do: (*world).callRecall},
		{name: "Prune, idempotency", do: (*world).callForget},
	}
}

// targetKey is the key of an idempotency record of each target's account.
const targetKey = "target"

func (w *world) callRemember(ctx context.Context, at *target) (int, error) {
	return 0, remember(ctx, w.store, w.fullRecord(at[accountPart], "key "+string(w.nextID())))
}

func (w *world) callRecall(ctx context.Context, at *target) (int, error) {
	_, err := w.store.Recall(ctx, at[accountPart], targetKey, start())
	return 0, err
}

func (w *world) callForget(ctx context.Context, _ *target) (int, error) {
	return w.store.Prune(ctx, formsvc.PruneIdempotency, start(), 10)
}

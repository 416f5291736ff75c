package storagetest

import (
	"context"
	"crypto/sha256"

	"github.com/formsvc/toolkit/formsvc"
)

// audit adds an entry to the audit trail.
func audit(ctx context.Context, s formsvc.Store, entry formsvc.AuditEntry) error {
	return s.Note(ctx, formsvc.Change{Audit: &entry})
}

// remember stores an idempotency record.
func remember(ctx context.Context, s formsvc.Store, record formsvc.IdempotencyRecord) error {
	return s.Note(ctx, formsvc.Change{Idempotency: &record})
}

// allEvents returns events of all accounts.
func allEvents(ctx context.Context, s formsvc.Store, q formsvc.EventQuery) (formsvc.EventPage, error) {
	q.AllAccounts = true
	return s.Events(ctx, q)
}

// allFiles returns files of all accounts after an identifier.
func allFiles(ctx context.Context, s formsvc.Store, after formsvc.ID, limit int) ([]formsvc.File, error) {
	page, err := s.Files(ctx, formsvc.FileQuery{AllAccounts: true, Page: formsvc.PageQuery{After: after, Limit: limit, Ascending: true}})
	return page.Items, err
}

// signaturesBy returns an account's signatures by a signer, after an identifier.
func signaturesBy(
	ctx context.Context, s formsvc.Store, account formsvc.ID, email string, after formsvc.ID, limit int,
) ([]formsvc.Signature, error) {
	page, err := s.Signatures(ctx, formsvc.SignatureQuery{
		AccountID: account, Email: email, Page: formsvc.PageQuery{After: after, Limit: limit, Ascending: true},
	})
	return page.Items, err
}

// endSession ends one session.
func endSession(ctx context.Context, s formsvc.Store, account formsvc.ID, hash [sha256.Size]byte) error {
	return s.EndSessions(ctx, formsvc.SessionQuery{AccountID: account, Hash: hash}, formsvc.Change{})
}

// countErasure returns the numbers of records that an erasure would remove.
func countErasure(ctx context.Context, s formsvc.Store, e formsvc.Erasing) (formsvc.Erased, error) {
	e.DryRun = true
	return s.Erase(ctx, e, formsvc.Change{})
}

// countPending returns how many deliveries of a webhook are pending.
func countPending(ctx context.Context, s formsvc.Store, key formsvc.WebhookKey, limit int) (int64, error) {
	stats, err := s.QueueStats(ctx, formsvc.QueueQuery{Webhook: &key, Limit: int64(limit)})
	return stats.Pending, err
}

package formsvc

import (
	"context"
	"fmt"
	"time"
)

// Older removes the responses of a campaign that were created longer than age ago, oldest first.
// With each it removes the files, comments, signatures and events, and the events' deliveries,
// attempts and notices. Those that are still waiting are no longer sent.
//
// The audit trail gets an entry before and one after. If Older fails midway, it returns what it had
// removed by then. It fails with a *[ValidationError] for an age that is not positive, and with
// [ErrNotFound] for an unknown campaign.
func (e Erasure) Older(ctx context.Context, key CampaignKey, age time.Duration, opts *ErasureOptions) (Receipt, error) {
	if age <= 0 {
		var v ValidationError
		v.add("/age", "invalid_value", "must be longer than 0")
		return Receipt{}, fmt.Errorf("formsvc: retention: %w", &v)
	}
	if _, err := e.s.store.Campaign(ctx, key); err != nil {
		return Receipt{}, fmt.Errorf("formsvc: retention: %w", err)
	}
	w := e.work(key.AccountID, opts)
	w.receipt.CampaignID, w.receipt.Before = key.ID, w.receipt.StartedAt.Add(-age)
	details := map[string]string{"receipt": string(w.receipt.ID), "before": w.receipt.Before.Format(time.RFC3339)}
	err := w.audited(ctx, AuditRetentionBegun, AuditRetentionDone, key.ID, details, func() error {
		if err := w.dropLeftovers(ctx); err != nil {
			return err
		}
		return w.found(ctx, key, ResponseFilter{CreatedBefore: w.receipt.Before})
	})
	if err != nil {
		return w.receipt, fmt.Errorf("formsvc: retention: %w", err)
	}
	return w.receipt, nil
}

// Prune deletes in atomic writes that are small enough that no request waits for one, with pauses
// in which others can write.
const (
	pruneBatch = 500
	prunePause = 50 * time.Millisecond
)

// Prune deletes events that are older than [Options.Retention], with their deliveries, attempts and
// notices, and the remains of deleted webhooks. It returns the number of deleted rows. Deliveries
// of these events are deleted even if they are still waiting, for example for a disabled webhook.
func (s *Service) Prune(ctx context.Context) (int, error) {
	before := time.Time{}
	if s.core.retention > 0 {
		before = s.core.now().Add(-s.core.retention)
	}
	deleted, err := inUnits(ctx, func() (int, error) { return s.core.store.Prune(ctx, PruneEvents, before, pruneBatch) })
	if err != nil {
		return deleted, fmt.Errorf("formsvc: prune: %w", err)
	}
	return deleted, nil
}

// inUnits repeats a deletion, with pauses, until it deletes nothing, and returns the total.
func inUnits(ctx context.Context, unit func() (int, error)) (deleted int, err error) {
	for {
		n, err := unit()
		deleted += n
		if err != nil || n == 0 {
			return deleted, err
		}
		if !pause(ctx, prunePause) {
			return deleted, ctx.Err()
		}
	}
}

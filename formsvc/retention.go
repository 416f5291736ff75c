package formsvc

import (
	"context"
	"fmt"
	"time"
)

// Older removes the responses of a campaign that were made longer than age ago,
// oldest first, each with its files, comments, signatures and events, and with the
// deliveries of these, the log of attempts and the notices. What waits to be
// delivered of them is not sent anymore.
//
// The audit trail has an entry before and one after. A call that fails returns
// what it had removed by then.
// It fails with a *[ValidationError] for an age that is not positive, and with
// [ErrNotFound] for an unknown campaign.
func (e Erasure) Older(ctx context.Context, key CampaignKey, age time.Duration, opts *ErasureOptions) (_ Receipt, err error) {
	defer e.s.span(&ctx, "Erasure.Older").end(&err)
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
	err = w.audited(ctx, AuditRetentionBegun, AuditRetentionDone, key.ID, details, func() error {
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

// How Prune deletes: in units small enough that no request waits for one, with
// pauses in which others can write.
const (
	pruneBatch = 500
	prunePause = 50 * time.Millisecond
)

// Prune deletes events that are older than [Options.Retention], with their
// deliveries, attempts and notices, and what is left of deleted webhooks. It
// returns how many rows it deleted. A delivery still waiting after that time, as
// for a webhook that is disabled, goes with its event.
func (s *Service) Prune(ctx context.Context) (deleted int, err error) {
	defer s.core.span(&ctx, "Service.Prune").end(&err)
	before := time.Time{}
	if s.core.retention > 0 {
		before = s.core.now().Add(-s.core.retention)
	}
	deleted, err = inUnits(ctx, func() (int, error) { return s.core.store.Prune(ctx, PruneEvents, before, pruneBatch) })
	if err != nil {
		return deleted, fmt.Errorf("formsvc: prune: %w", err)
	}
	return deleted, nil
}

// inUnits repeats a unit, with pauses, until it deletes nothing, and returns how
// much all deleted.
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

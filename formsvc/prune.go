package formsvc

import (
	"cmp"
	"context"
	"time"
)

// Prune deletes in atomic writes that are small enough that no request waits for one, with pauses
// in which others can write.
const (
	pruneBatch = 500
	prunePause = 50 * time.Millisecond
)

// How long records that nobody needs are kept.
const (
	quotaKept   = 48 * time.Hour // windows, at least
	sessionKept = time.Hour      // expired sessions and links: the clocks of nodes may differ by that much
)

// Prune deletes what is no longer needed, and returns the number of deleted rows:
//   - events that are older than [Options.Retention], with their deliveries, attempts and notices,
//     even if deliveries are still waiting, for example for a disabled webhook;
//   - the remains of deleted webhooks;
//   - replies that are older than [IdempotencyTTL];
//   - expired links and sessions, and windows of quotas that are over.
//
// If it can't delete one kind, it goes on with the others and returns the first error.
func (s *Service) Prune(ctx context.Context) (deleted int, err error) {
	defer wrap(&err, "prune")
	now, events := s.core.now(), time.Time{}
	if s.core.retention > 0 {
		events = now.Add(-s.core.retention)
	}
	for _, p := range []struct {
		what   Prunable
		before time.Time
	}{
		{PruneEvents, events},
		{PruneIdempotency, now.Add(-IdempotencyTTL)},
		{PruneQuota, now.Add(-max(quotaKept, 2*s.core.quota.window))},
		{PruneSessions, now.Add(-sessionKept)},
	} {
		n, failed := s.core.prune(ctx, p.what, p.before)
		deleted, err = deleted+n, cmp.Or(err, failed)
	}
	return deleted, err
}

// prune deletes until nothing is left, with pauses, and returns the number of deleted rows.
func (c *core) prune(ctx context.Context, what Prunable, before time.Time) (deleted int, err error) {
	for {
		n, err := c.store.Prune(ctx, what, before, pruneBatch)
		deleted += n
		if err != nil || n == 0 {
			return deleted, err
		}
		if !pause(ctx, prunePause) {
			return deleted, ctx.Err()
		}
	}
}

package formsvc

import (
	"context"
	"fmt"
	"time"
)

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

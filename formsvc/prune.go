package formsvc

import (
	"context"
	"fmt"
	"time"
)

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
	deleted, err = inUnits(ctx, func() (int, error) { return s.core.store.Prune(ctx, before, pruneBatch) })
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

package formsvc

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// DefaultRetention is how long events are kept (contract: 30 days).
const DefaultRetention = 30 * 24 * time.Hour

// How Run prunes: in units small enough that no request waits for one, with
// pauses in which others can write.
const (
	pruneInterval = time.Hour
	pruneBatch    = 500
	prunePause    = 50 * time.Millisecond
)

// Run does the regular work of a service until ctx ends, and then returns nil:
// at once and then every hour it deletes what is older than
// [Options.Retention]. Several nodes may run it on one store. Errors of the
// store are logged; the next round tries again.
func (s *Service) Run(ctx context.Context) error {
	for {
		if _, err := s.Prune(ctx); err != nil && ctx.Err() == nil {
			s.core.logger.LogAttrs(ctx, slog.LevelError, "pruning failed", slog.Any("error", err))
		}
		if !pause(ctx, pruneInterval) {
			return nil
		}
	}
}

// Prune deletes events that are older than [Options.Retention], with their
// deliveries, attempts and notices, and what is left of deleted webhooks. It
// returns how many rows it deleted. A delivery still waiting after that time, as
// for a webhook that is disabled, goes with its event.
func (s *Service) Prune(ctx context.Context) (deleted int, err error) {
	before := time.Time{}
	if s.core.retention > 0 {
		before = s.core.now().Add(-s.core.retention)
	}
	for {
		n, err := s.core.store.Prune(ctx, before, pruneBatch)
		deleted += n
		if err != nil {
			return deleted, fmt.Errorf("formsvc: prune: %w", err)
		}
		if n == 0 {
			return deleted, nil
		}
		if !pause(ctx, prunePause) {
			return deleted, ctx.Err()
		}
	}
}

// pause returns after d, or when ctx ends, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

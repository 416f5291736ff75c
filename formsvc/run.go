package formsvc

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// How often Run does what.
const (
	pruneInterval = time.Hour
	sweepInterval = 24 * time.Hour // listing the blobs of a large bucket takes minutes and costs money
)

// Run does the regular work of a service until ctx ends, and then returns nil:
// at once and then every hour it deletes what is older than
// [Options.Retention], answers that need not be remembered any more
// ([Service.Forget]), and links and sessions that are over; once a day, first after
// an hour, it sweeps the blobs ([Files.Sweep]). Beside that it writes every minute
// when keys were used ([Keys.WriteUses]), and returns granted requests of keys that
// rest; when ctx ends it does both for the last time ([Quotas.Release]), which may
// take 5 seconds; let requests end before. Several nodes may run it on one store.
// Errors are logged; the next round tries again.
func (s *Service) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { s.core.quota.run(ctx, s.core.logger) })
	beside.Go(func() { s.Keys.writeUses(ctx) })
	defer beside.Wait()
	swept := s.core.now().Add(pruneInterval - sweepInterval)
	for {
		if _, err := s.Prune(ctx); err != nil && ctx.Err() == nil {
			s.core.logger.LogAttrs(ctx, slog.LevelError, "pruning failed", slog.Any("error", err))
		}
		if _, err := s.Forget(ctx); err != nil && ctx.Err() == nil {
			s.core.logger.LogAttrs(ctx, slog.LevelError, "forgetting answers failed", slog.Any("error", err))
		}
		if err := s.pruneQuota(ctx); err != nil && ctx.Err() == nil {
			s.core.logger.LogAttrs(ctx, slog.LevelError, "pruning quotas failed", slog.Any("error", err))
		}
		if err := s.pruneSessions(ctx); err != nil && ctx.Err() == nil {
			s.core.logger.LogAttrs(ctx, slog.LevelError, "pruning sessions failed", slog.Any("error", err))
		}
		if now := s.core.now(); s.core.blobs != nil && now.Sub(swept) >= sweepInterval {
			swept = now
			s.sweep(ctx)
		}
		if !pause(ctx, pruneInterval) {
			return nil
		}
	}
}

// sweep removes blobs without a file and says so.
func (s *Service) sweep(ctx context.Context) {
	result, err := s.Files.Sweep(ctx, nil)
	if err != nil && ctx.Err() == nil {
		s.core.logger.LogAttrs(ctx, slog.LevelError, "sweeping failed", slog.Any("error", err))
	}
	if result.Removed > 0 || result.Leftover > 0 {
		s.core.logger.LogAttrs(ctx, slog.LevelInfo, "swept blobs without a file",
			slog.Int("removed", result.Removed), slog.Int("leftover", result.Leftover))
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

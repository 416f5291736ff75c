package formsvc

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Intervals of Run's work.
const (
	pruneInterval = time.Hour
	sweepInterval = 24 * time.Hour // listing the blobs of a large bucket takes minutes and costs money
)

// Run does the regular work of a service until ctx ends, and then returns nil. At once and then
// every hour it deletes what is older than [Options.Retention], expired replies ([Service.Forget]),
// and expired links and sessions. Once a day, first after an hour, it sweeps the blobs
// ([Files.Sweep]). Every minute it writes when keys were used ([Keys.WriteUses]), and each second
// what the quotas have counted ([Quotas.Flush]). When ctx ends it does both once more, which may take
// 10 seconds, so finish serving requests first. Several nodes may run it on one store. It logs errors
// and retries in the next round.
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

// sweep removes blobs without a file and logs their number.
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

// pause waits for d or the end of ctx, and reports whether ctx is still active.
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

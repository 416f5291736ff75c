package formsvc

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

const (
	quotaTick    = time.Second     // how often to look for idle keys
	quotaGoodbye = 5 * time.Second // time limit of the last return
	quotaKept    = 48 * time.Hour  // windows are kept for at least this long
)

// run returns what idle subjects hold until ctx ends, and then everything.
func (l *quotaLedger) run(ctx context.Context, logger *slog.Logger) {
	if l.limit == 0 {
		return
	}
	for pause(ctx, quotaTick) {
		if err := l.release(ctx, QuotaIdle); err != nil && ctx.Err() == nil {
			logger.LogAttrs(ctx, slog.LevelError, "returning unused quota failed", slog.Any("error", err))
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), quotaGoodbye)
	defer cancel()
	if err := l.release(last, 0); err != nil {
		logger.LogAttrs(ctx, slog.LevelError, "returning unused quota failed; it is free again when the window ends",
			slog.Any("error", err))
	}
}

// release returns what is held for subjects that have been idle for that long, and drops windows
// that have ended.
func (l *quotaLedger) release(ctx context.Context, idle time.Duration) error {
	list := l.rest(idle)
	if len(list) == 0 {
		return nil
	}
	err := l.store.ReturnQuota(ctx, list)
	// If it is unknown whether the store has it back, it isn't used again.
	if err != nil && !errors.Is(err, ErrUnknownOutcome) {
		l.restore(list)
	}
	return err
}

// rest takes what is held for subjects that have been idle for that long.
func (l *quotaLedger) rest(idle time.Duration) []QuotaReturn {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var list []QuotaReturn
	for subject, b := range l.balances {
		switch {
		case b.asking:
		case !b.good(now):
			delete(l.balances, subject)
		case b.own > 0 && now.Sub(b.used) >= idle:
			list = append(list, QuotaReturn{Subject: subject, Start: b.start, N: b.own})
			b.left += b.own
			b.own = 0
			b.block /= 2
		}
	}
	return list
}

// restore takes back what could not be returned.
func (l *quotaLedger) restore(list []QuotaReturn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range list {
		if b := l.balances[r.Subject]; b != nil && b.start.Equal(r.Start) {
			b.own += r.N
			b.left = max(b.left-r.N, 0)
		}
	}
}

// pruneQuota deletes windows that are older than quotaKept, and older than two windows.
func (s *Service) pruneQuota(ctx context.Context) error {
	l := s.core.quota
	before := l.now().Add(-max(quotaKept, 2*l.window))
	_, err := inUnits(ctx, func() (int, error) { return s.core.store.Prune(ctx, PruneQuota, before, pruneBatch) })
	return err
}

package formsvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Intervals of Run's work.
const (
	pruneInterval = time.Hour
	sweepInterval = 24 * time.Hour // listing the blobs of a large bucket takes minutes and costs money
	useInterval   = time.Minute
	quotaInterval = time.Second
	// writeTimeout limits one write of counts, so that Run ends soon after its context.
	writeTimeout = 10 * time.Second
)

// Run does the regular work of a service until ctx ends, and then returns nil: [Service.Prune] at once and then every
// hour, [Files.Sweep] once a day, first after an hour, [Keys.WriteUses] and [Webhooks.SendSummaries] every minute, and
// [Quotas.Flush] each second. When ctx ends it does the last three once more, which may take 10 seconds, so finish serving requests first. Several
// nodes may run it on one store. It logs errors and retries in the next round.
func (s *Service) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { s.core.write(ctx, quotaInterval, s.Quotas.Flush) })
	beside.Go(func() { s.core.write(ctx, useInterval, s.Keys.WriteUses) })
	beside.Go(func() { s.core.write(ctx, useInterval, s.Webhooks.SendSummaries) })
	defer beside.Wait()
	swept := s.core.now().Add(pruneInterval - sweepInterval)
	for {
		if _, err := s.Prune(ctx); err != nil && ctx.Err() == nil {
			s.core.failed(ctx, err)
		}
		if now := s.core.now(); s.core.Blobs != nil && now.Sub(swept) >= sweepInterval {
			swept = now
			s.sweep(ctx)
		}
		if !pause(ctx, pruneInterval) {
			return nil
		}
	}
}

// write calls do in each interval until ctx ends, and then once more.
func (c *core) write(ctx context.Context, interval time.Duration, do func(context.Context) error) {
	for more := true; more; {
		more = pause(ctx, interval)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		if err := do(limited); err != nil {
			c.failed(ctx, err)
		}
		cancel()
	}
}

// failed logs an error of regular work, which names the work.
func (c *core) failed(ctx context.Context, err error) {
	c.Logger.LogAttrs(ctx, slog.LevelError, "background maintenance failed", slog.Any("error", err))
}

// sweep removes blobs without a file and logs their number.
func (s *Service) sweep(ctx context.Context) {
	result, err := s.Files.Sweep(ctx, nil)
	if err != nil && ctx.Err() == nil {
		s.core.failed(ctx, err)
	}
	if result.Removed > 0 || result.Leftover > 0 {
		s.core.Logger.LogAttrs(ctx, slog.LevelInfo, "swept blobs without a file",
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

// Prune deletes in small atomic writes, with pauses in which others can write.
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
	store, now, events := s.core.store, s.core.now(), time.Time{}
	if s.core.Retention > 0 {
		events = now.Add(-s.core.Retention)
	}
	for _, p := range []struct {
		prune  pruneFunc
		before time.Time
	}{
		{store.PruneEvents, events},
		{store.PruneIdempotency, now.Add(-IdempotencyTTL)},
		{store.PruneQuota, now.Add(-max(quotaKept, 2*s.core.quota.Window))},
		{store.PruneSessions, now.Add(-sessionKept)},
	} {
		n, failed := s.core.prune(ctx, p.prune, p.before)
		deleted, err = deleted+n, cmp.Or(err, failed)
	}
	return deleted, err
}

// A pruneFunc is a Prune method of [Store].
type pruneFunc = func(ctx context.Context, before time.Time, limit int) (int, error)

// prune deletes until nothing is left, with pauses, and returns the number of deleted rows.
func (c *core) prune(ctx context.Context, batch pruneFunc, before time.Time) (deleted int, err error) {
	for {
		n, err := batch(ctx, before, pruneBatch)
		deleted += n
		if err != nil || n == 0 {
			return deleted, err
		}
		if !pause(ctx, prunePause) {
			return deleted, ctx.Err()
		}
	}
}

// readyTimeout limits Ready, because load balancers don't wait long for a health check.
const readyTimeout = 3 * time.Second

// A DegradedError says that requests which need some component fail, and that all others work.
type DegradedError struct {
	// Components names them: "files" is the blob store.
	Components []string
	// Err is the cause.
	Err error
}

// Error names the components and the cause.
func (e *DegradedError) Error() string {
	return strings.Join(e.Components, ", ") + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DegradedError) Unwrap() error { return e.Err }

// Ready returns nil if the store and the blob store, if there is one, reply within 3 seconds. If only the blob store fails, the error
// is a [*DegradedError]: requests that don't read or write the content of files work.
func (s *Service) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	blobs := make(chan error, 1)
	ask := func() {
		blobs <- s.blobsReady(ctx)
		<-s.core.asking
	}
	asking := true
	select {
	case s.core.asking <- struct{}{}:
		go ask()
	default:
		asking = false
	}
	if _, err := s.core.store.Identity(ctx); err != nil {
		return fmt.Errorf("formsvc: store: %w", err)
	}
	if !asking {
		select {
		case s.core.asking <- struct{}{}:
			go ask()
		case <-ctx.Done():
		}
	}
	var err error
	select {
	case err = <-blobs:
	case <-ctx.Done(): // a file system on a network can ignore the context, and then holds one goroutine
		err = blobError(ctx.Err())
	}
	if err != nil {
		return &DegradedError{Components: []string{"files"}, Err: fmt.Errorf("formsvc: blobs: %w", err)}
	}
	return nil
}

func (s *Service) blobsReady(ctx context.Context) error {
	if s.core.Blobs == nil {
		return nil
	}
	if _, err := s.core.Blobs.Stat(ctx, "ready"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return blobError(err)
	}
	return nil
}

package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// noticeBatch is how many notices are leased at once.
	noticeBatch = 64
	// noticeWorkers is how many notices are given at once.
	noticeWorkers = 8
	// noticePoll is how often to look for notices that another process could not give.
	noticePoll = time.Minute
)

// notify gives notices until ctx ends: existing ones, those of outcomes that were just recorded,
// and once a minute those that were left over.
func (r *run) notify(ctx context.Context) {
	var failing backoff
	for ctx.Err() == nil {
		pause := noticePoll
		if err := r.giveNotices(ctx); err == nil {
			failing.reset()
		} else if ctx.Err() == nil {
			pause = failing.next()
			r.log(ctx, slog.LevelError, "webhook notices failed", slog.Any("error", err), slog.Duration("pause", pause))
		}
		r.awaitFailures(ctx, pause)
	}
}

// awaitFailures waits until notices may be due.
func (r *run) awaitFailures(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	failures := r.failures
	if pause < noticePoll {
		failures = nil // after an error, wait for the pause
	}
	select {
	case <-ctx.Done():
	case <-failures:
	case <-timer.C:
	}
}

// expectNotice signals that there is a notice to give.
func (r *run) expectNotice() {
	select {
	case r.failures <- struct{}{}:
	default:
	}
}

// giveNotices gives the notices that are due until there are no more. If the process dies before a
// notice is noted, the notice is given again.
func (r *run) giveNotices(ctx context.Context) error {
	for ctx.Err() == nil {
		due, err := r.lease(ctx)
		if err != nil || len(due) == 0 {
			return err
		}
		given := r.giveBatch(ctx, due)
		if len(given) == 0 {
			continue
		}
		call, cancel := context.WithTimeout(r.work, r.storeTimeout)
		err = r.queue.Noted(call, given)
		cancel()
		if err != nil {
			return fmt.Errorf("delivery: noted: %w", err)
		}
	}
	return ctx.Err()
}

func (r *run) lease(ctx context.Context) ([]Failure, error) {
	call, cancel := context.WithTimeout(ctx, r.storeTimeout)
	defer cancel()
	now := r.opts.Now()
	due, err := r.queue.Failures(call, now, now.Add(r.opts.Lease), noticeBatch)
	if err != nil {
		return nil, fmt.Errorf("delivery: failures: %w", err)
	}
	return due, nil
}

// giveBatch calls OnFailure for each notice and returns the deliveries for which it succeeded. It
// starts no call after ctx has ended, or if the lease could end before the notice is noted; running
// calls must then end soon.
func (r *run) giveBatch(ctx context.Context, due []Failure) (given []string) {
	call, cancel := context.WithTimeout(r.work, r.opts.Lease-2*r.storeTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		sleep(call, flushTimeout)
		cancel()
	})()
	var mu sync.Mutex
	var calls sync.WaitGroup
	workers := make(chan struct{}, noticeWorkers)
	for _, f := range due {
		workers <- struct{}{}
		calls.Go(func() {
			defer func() { <-workers }()
			if ctx.Err() != nil || call.Err() != nil {
				return
			}
			if err := r.opts.OnFailure(call, f); err != nil {
				r.log(ctx, slog.LevelWarn, "webhook notice not given: it will be given again",
					slog.String("delivery", f.Delivery), slog.String("endpoint", f.Endpoint), slog.Any("error", err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			given = append(given, f.Delivery)
		})
	}
	calls.Wait()
	return given
}

package delivery

import (
	"context"
	"slices"
	"time"
)

// A backlog holds jobs whose outcomes could not be recorded at the first try.
//
// The error of a batch may come from a queue that is down or from one outcome that the queue
// refuses. So jobs are retried with increasing pauses and in decreasing batches, which isolates
// that outcome. New outcomes are not mixed with them and don't wait for them.
type backlog struct {
	jobs  []*job
	size  int       // of the next batch
	at    time.Time // when it is tried
	pause backoff
}

// add adds a batch that failed, before the others if it is fresh: failed for the first time. alive says
// that the queue has worked since the last failure: then an outcome is the cause, and the others in its
// batch should not wait for long.
func (b *backlog) add(batch []*job, fresh, alive bool) {
	if fresh {
		b.jobs = slices.Concat(batch, b.jobs)
	} else {
		b.jobs = append(b.jobs, batch...)
	}
	if alive {
		b.pause.reset()
	}
	b.size = max(1, len(batch)/2)
	b.at = time.Now().Add(b.pause.next())
}

// progress notes that a batch was recorded, so the next one needn't wait.
func (b *backlog) progress() {
	b.size = min(2*b.size, maxBatch)
	b.pause.reset()
}

// due returns the next batch if it is due, or if ctx has ended.
func (b *backlog) due(ctx context.Context) []*job {
	if len(b.jobs) == 0 || ctx.Err() == nil && time.Now().Before(b.at) {
		return nil
	}
	n := min(b.size, len(b.jobs))
	batch := b.jobs[:n:n]
	b.jobs = b.jobs[n:]
	return batch
}

// wait waits until a batch is due, or until more has a value.
func (b *backlog) wait(ctx context.Context, more <-chan struct{}) {
	if len(b.jobs) == 0 {
		<-more
		return
	}
	timer := time.NewTimer(time.Until(b.at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-more:
	case <-timer.C:
	}
}

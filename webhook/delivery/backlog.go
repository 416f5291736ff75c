package delivery

import (
	"context"
	"slices"
	"time"
)

// A backlog holds jobs whose outcomes were not recorded at the first try.
//
// The error of a batch may come from a queue that is down or from one outcome
// that the queue cannot take. So they are tried with ever longer pauses, and in
// ever smaller batches, which finds that one. New outcomes are not mixed with
// them and do not wait for them.
type backlog struct {
	jobs  []*job
	size  int       // of the next batch
	at    time.Time // when it is tried
	pause backoff
}

// join adds a batch that failed for the first time. It goes first.
func (b *backlog) join(batch []*job, alive bool) {
	b.jobs = slices.Concat(batch, b.jobs)
	b.postpone(len(batch), alive)
}

// rejoin puts a batch back that failed again, behind the others.
func (b *backlog) rejoin(batch []*job, alive bool) {
	b.jobs = append(b.jobs, batch...)
	b.postpone(len(batch), alive)
}

// postpone sets size and time of the next batch after one failed. alive tells
// that the queue did something else since the last failure: then the outcomes
// are to blame, and the neighbours of the bad one should not wait for long.
func (b *backlog) postpone(failed int, alive bool) {
	if alive {
		b.pause.reset()
	}
	b.size = max(1, failed/2)
	b.at = time.Now().Add(b.pause.next())
}

// progress tells that a batch was recorded: the next one need not wait.
func (b *backlog) progress() {
	b.size = min(2*b.size, maxBatch)
	b.pause.reset()
}

// due returns the next batch when its time has come, or when ctx has ended.
func (b *backlog) due(ctx context.Context) []*job {
	if len(b.jobs) == 0 || ctx.Err() == nil && time.Now().Before(b.at) {
		return nil
	}
	n := min(b.size, len(b.jobs))
	batch := b.jobs[:n:n]
	b.jobs = b.jobs[n:]
	return batch
}

// wait returns when a batch is due, or when there is something in more.
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

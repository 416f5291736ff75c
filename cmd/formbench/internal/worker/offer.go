package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Offer has accept called with the numbers 0 to c.N-1: by c.Callers in a closed
// loop, each calling again when the last call returned, or every c.Every,
// whatever became of those before. It returns when all calls returned, with the
// first error.
func Offer(ctx context.Context, c *Command, accept func(ctx context.Context, number int) error) (Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stamps := make([]Stamp, c.N)
	once := func(i int) {
		stamps[i].Begin = time.Now().UnixNano()
		if err := accept(ctx, i); err != nil {
			cancel(err)
		}
		stamps[i].Done = time.Now().UnixNano()
	}
	start := time.Now()
	if c.Every > 0 {
		open(ctx, c.N, c.Every, once)
	} else {
		closed(ctx, c.N, c.Callers, once)
	}
	r := Reply{N: c.N, Seconds: time.Since(start).Seconds()}
	if c.Stamps {
		r.Stamps = stamps
	}
	return r, context.Cause(ctx)
}

func closed(ctx context.Context, n, callers int, once func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(1, min(callers, n)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				once(i)
			}
		})
	}
	wg.Wait()
}

func open(ctx context.Context, n int, every time.Duration, once func(int)) {
	var wg sync.WaitGroup
	start := time.Now()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		time.Sleep(time.Until(start.Add(time.Duration(i) * every)))
		wg.Go(func() { once(i) })
	}
	wg.Wait()
}

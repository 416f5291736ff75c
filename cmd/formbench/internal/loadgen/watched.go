package loadgen

import (
	"context"
	"errors"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
)

// Watched runs the load and reads the CPU times at its beginning and end.
func (l *Load) Watched(ctx context.Context, server int) (s Sample, before, after proc.Usage, err error) {
	var loadErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, loadErr = l.run(ctx)
	}()
	WaitUntil(l.Begin, done)
	before, err = proc.ReadUsage(server)
	WaitUntil(l.End, done)
	after, afterErr := proc.ReadUsage(server)
	<-done
	return s, before, after, errors.Join(loadErr, err, afterErr)
}

// WaitUntil returns at that time, or earlier when done is closed.
func WaitUntil(t time.Time, done <-chan struct{}) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

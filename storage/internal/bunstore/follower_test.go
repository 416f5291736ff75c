package bunstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A crowd is units that follow in one group, which is under way until hold is closed.
type crowd struct {
	hold  chan struct{}
	units []*Unit
	done  chan int // which of them was answered
	errs  []error
}

// newCrowd has a group of n under way, of which the unit i ends with ctx[i]. Whoever
// commits it runs end first.
func newCrowd(t *testing.T, end func(group []*Unit), contexts ...context.Context) *crowd {
	t.Helper()
	c := &crowd{
		hold: make(chan struct{}), units: make([]*Unit, len(contexts)), done: make(chan int, len(contexts)), errs: make([]error, len(contexts)),
	}
	first := make(chan struct{})
	commit, _ := groupCommit(len(contexts), func(group []*Unit) {
		if group[0] != c.units[0] { // alone before them, so that they gather
			<-first
			return
		}
		<-c.hold
		end(group)
	})
	go func() { _ = commit(context.Background(), &Unit{}) }()
	synctest.Wait()
	for i, ctx := range contexts {
		c.units[i] = &Unit{}
		go func() {
			c.errs[i] = commit(ctx, c.units[i])
			c.done <- i
		}()
		synctest.Wait() // one after the other, the first one leads
	}
	close(first)
	synctest.Wait()
	return c
}

// wantNobody fails the test when a unit was answered.
func (c *crowd) wantNobody(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if n := len(c.done); n > 0 {
		t.Errorf("%d units were answered before they were committed", n)
	}
}

func TestNobodyIsAnsweredBeforeTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the commit failed")
		c := newCrowd(t, func(group []*Unit) {
			for _, u := range group {
				u.Err = broken
			}
		}, t.Context(), t.Context(), t.Context())
		c.wantNobody(t)
		close(c.hold)
		for range c.units {
			if i := <-c.done; !errors.Is(c.errs[i], broken) {
				t.Errorf("unit %d of a commit that failed got %v", i, c.errs[i])
			}
		}
	})
}

// TestAFollowerUnderWayIsToldTheTruth cancels a unit that another one is committing:
// its caller must not take it for one that did not happen.
func TestAFollowerUnderWayIsToldTheTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCrowd(t, func([]*Unit) {}, t.Context(), ctx, t.Context())
		cancel()
		c.wantNobody(t)
		close(c.hold)
		for range c.units {
			if i := <-c.done; c.errs[i] != nil {
				t.Errorf("unit %d, which was committed, got %v", i, c.errs[i])
			}
		}
	})
}

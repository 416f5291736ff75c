package bunstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A crowd is units in one group, which is under way until hold is closed.
type crowd struct {
	hold  chan struct{}
	units []*Unit
	done  chan int // sends the index of each unit whose call returned
	errs  []error
}

// newCrowd starts a group of a unit for each context, which unit i uses. The group's
// leader calls end first.
func newCrowd(t *testing.T, end func(group []*Unit), contexts ...context.Context) *crowd {
	t.Helper()
	c := &crowd{
		hold: make(chan struct{}), units: make([]*Unit, len(contexts)), done: make(chan int, len(contexts)), errs: make([]error, len(contexts)),
	}
	first := make(chan struct{})
	commit, _ := groupCommit(len(contexts), func(group []*Unit) {
		if group[0] != c.units[0] { // commits alone, so that the next ones gather
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
		synctest.Wait() // started in order, so that the first one leads
	}
	close(first)
	synctest.Wait()
	return c
}

// wantNobody fails the test if a unit's call has returned.
func (c *crowd) wantNobody(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if n := len(c.done); n > 0 {
		t.Errorf("%d units were answered before they were committed", n)
	}
}

func TestCallsReturnAfterTheCommit(t *testing.T) {
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

// A unit is cancelled while another goroutine commits it; its caller must not be told
// that nothing was written.
func TestFollowerUnderWayReturnsItsOutcome(t *testing.T) {
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

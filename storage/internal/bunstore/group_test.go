package bunstore

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// An errand is a member that counts how often it ran.
type errand struct {
	member

	ran int
}

func run(_ context.Context, group []*errand) {
	for _, e := range group {
		e.ran++
	}
}

func TestConcurrentGroupsAreLimitedToLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var mu sync.Mutex
		var sizes []int
		g := newGrouper(3, 2, nil, func(ctx context.Context, group []*errand) {
			mu.Lock()
			sizes = append(sizes, len(group))
			mu.Unlock()
			run(ctx, group)
			<-hold
		})
		errands := make([]errand, 9)
		var all sync.WaitGroup
		for i := range errands {
			all.Go(func() { _ = g.do(t.Context(), &errands[i]) })
		}
		synctest.Wait()
		if !slices.Equal(sizes, []int{1, 1}) {
			t.Fatalf("groups of %v are under way, want two of one", sizes)
		}
		close(hold)
		all.Wait()
		for i := range errands {
			if errands[i].ran != 1 {
				t.Errorf("errand %d ran %d times", i, errands[i].ran)
			}
		}
		if largest := slices.Max(sizes); largest > 3 {
			t.Errorf("a group of %d, want at most 3", largest)
		}
	})
}

// Leaders withdraw, take and hand on the lead in every order. Each errand that isn't
// withdrawn runs exactly once, and every call returns.
func TestSeveralLeadersRunEverythingOnce(t *testing.T) {
	for range 2_000 {
		g := newGrouper(2, 3, nil, run)
		errands := make([]errand, 12)
		var all sync.WaitGroup
		for i := range errands {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i%3 == 0 {
					go cancel()
				}
				want := 1
				if err := g.do(ctx, &errands[i]); err != nil {
					want = 0
				}
				if errands[i].ran != want {
					t.Errorf("errand %d ran %d times, want %d", i, errands[i].ran, want)
				}
			})
		}
		all.Wait()
		g.close()
	}
}

// A call of a group under way returns when its context ends, the leader's too; all others wait for the group.
func TestCallsAreAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := newGrouper(8, 1, nil, func(ctx context.Context, group []*errand) {
			if ctx.Done() != nil {
				t.Error("the group's context can end")
			}
			<-hold
			run(ctx, group)
		})
		g.abandon = true
		errands := make([]errand, 6)
		errs := make([]error, len(errands))
		var all sync.WaitGroup
		call := func(i int, ctx context.Context) {
			all.Go(func() { errs[i] = g.do(ctx, &errands[i]) })
			synctest.Wait()
		}
		short, cancel := context.WithCancel(t.Context())
		call(0, short) // leads the first group
		call(1, short) // is queued
		call(2, t.Context())
		cancel()
		synctest.Wait()
		if errs[0] == nil || errs[1] == nil {
			t.Errorf("the abandoned calls got %v and %v", errs[0], errs[1])
		}
		hold <- struct{}{} // the first group ends, 2 leads the second
		synctest.Wait()
		short, cancel = context.WithCancel(t.Context())
		call(3, t.Context()) // leads the third
		call(4, short)
		call(5, t.Context())
		hold <- struct{}{}
		synctest.Wait() // 3, 4 and 5 are under way
		cancel()
		synctest.Wait()
		if errs[4] == nil {
			t.Error("the abandoned call of a group waits for it")
		}
		hold <- struct{}{}
		all.Wait()
		g.close()
		for i, want := range []int{1, 0, 1, 1, 1, 1} {
			if errands[i].ran != want {
				t.Errorf("errand %d ran %d times, want %d", i, errands[i].ran, want)
			}
			if failed := errs[i] != nil; failed != (i == 0 || i == 1 || i == 4) {
				t.Errorf("errand %d: %v", i, errs[i])
			}
		}
	})
}

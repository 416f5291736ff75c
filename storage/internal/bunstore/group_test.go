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

func TestAsManyGroupsAtOnceAsThereMayBeLeaders(t *testing.T) {
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

// TestSeveralLeadersRunEverythingOnce has leaders withdraw, take and hand on the
// lead in every order: each errand that isn't withdrawn runs once, and nobody waits
// for ever.
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

package bunstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// recorder runs groups and records their sizes. While hold is set, each group waits for
// it.
type recorder struct {
	mu     sync.Mutex
	groups [][]*Unit
	hold   chan struct{}
}

func (r *recorder) run(group []*Unit) {
	r.mu.Lock()
	r.groups = append(r.groups, group)
	hold := r.hold
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

// groupCommit commits units in groups of at most limit, each by run.
func groupCommit(limit int, run func([]*Unit)) (commit func(context.Context, *Unit) error, drain func()) {
	k := &committer{Config: new(Config), groups: newGrouper(limit, nil, run)}
	return k.commit, k.groups.close
}

func (r *recorder) sizes() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	sizes := make([]int, len(r.groups))
	for i, g := range r.groups {
		sizes[i] = len(g)
	}
	return sizes
}

func wantSizes(t *testing.T, r *recorder, want ...int) {
	t.Helper()
	got := r.sizes()
	if len(got) != len(want) {
		t.Fatalf("groups of %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("groups of %v, want %v", got, want)
		}
	}
}

func TestLoneUnitCommitsAtOnce(t *testing.T) {
	r := &recorder{}
	commit, drain := groupCommit(8, r.run)
	for range 3 {
		if err := commit(t.Context(), &Unit{}); err != nil {
			t.Fatal(err)
		}
	}
	drain()
	wantSizes(t, r, 1, 1, 1)
}

func TestQueuedUnitsShareTheNextCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{hold: make(chan struct{})}
		commit, _ := groupCommit(4, r.run)
		var wg sync.WaitGroup
		wg.Go(func() { _ = commit(t.Context(), &Unit{}) })
		synctest.Wait() // it leads; one that came before its group began would be in it
		for range 9 {
			wg.Go(func() { _ = commit(t.Context(), &Unit{}) })
		}
		synctest.Wait()
		wantSizes(t, r, 1)
		close(r.hold)
		wg.Wait()
		wantSizes(t, r, 1, 4, 4, 1)
	})
}

func TestUnitGetsItsOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := errors.New("mine")
		hold := make(chan struct{})
		commit, _ := groupCommit(8, func(group []*Unit) {
			<-hold
			for _, u := range group {
				if u.Creation != nil {
					u.Err = mine
				}
			}
		})
		errs := make([]error, 6)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				u := &Unit{}
				if i%2 == 1 {
					u.Creation = &Creation{}
				}
				errs[i] = commit(t.Context(), u)
			})
		}
		synctest.Wait()
		close(hold)
		wg.Wait()
		for i, err := range errs {
			if want := i%2 == 1; errors.Is(err, mine) != want {
				t.Errorf("unit %d: error %v, want its own: %t", i, err, want)
			}
		}
	})
}

func TestQueuedUnitIsWithdrawnWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{hold: make(chan struct{})}
		commit, _ := groupCommit(8, r.run)
		first, waiting, other := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { first <- commit(context.Background(), &Unit{}) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		withdrawn := &Unit{}
		go func() { waiting <- commit(ctx, withdrawn) }()
		synctest.Wait()
		go func() { other <- commit(context.Background(), &Unit{}) }()
		synctest.Wait()
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("withdrawn unit: %v, want context.Canceled", err)
		}
		close(r.hold)
		if err := errors.Join(<-first, <-other); err != nil {
			t.Error(err)
		}
		for _, group := range r.groups {
			for _, u := range group {
				if u == withdrawn {
					t.Error("a unit was committed after its caller was told that it was not")
				}
			}
		}
		wantSizes(t, r, 1, 1)
	})
}

func TestUnitUnderWayReturnsItsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{hold: make(chan struct{})}
		commit, _ := groupCommit(8, r.run)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- commit(context.Background(), &Unit{}) }()
		synctest.Wait()
		go func() { done <- commit(ctx, &Unit{}) }()
		synctest.Wait()
		r.hold <- struct{}{} // the first group ends, the second is under way
		synctest.Wait()
		cancel()
		synctest.Wait()
		r.hold <- struct{}{}
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("a unit that was committed got %v", err)
			}
		}
	})
}

// A unit is cancelled at the moment it is to lead; the units queued behind it must still
// run.
func TestCancelledLeaderHandsOnTheLead(t *testing.T) {
	for range 2_000 {
		commit, drain := groupCommit(1, func([]*Unit) {})
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				if i%2 == 0 {
					go cancel()
				}
				_ = commit(ctx, &Unit{})
				cancel()
			})
		}
		wg.Wait()
		drain()
	}
}

func TestCloseFinishesQueuedUnitsAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{hold: make(chan struct{})}
		commit, drain := groupCommit(2, r.run)
		results := make(chan error, 5)
		for range 5 {
			go func() { results <- commit(context.Background(), &Unit{}) }()
		}
		synctest.Wait()
		drained := make(chan struct{})
		go func() {
			drain()
			close(drained)
		}()
		synctest.Wait()
		if err := commit(context.Background(), &Unit{}); !errors.Is(err, formsvc.ErrStoreClosed) {
			t.Errorf("a unit after drain: %v, want ErrStoreClosed", err)
		}
		select {
		case <-drained:
			t.Error("drain returned before the units were committed")
		case <-time.After(time.Hour):
		}
		close(r.hold)
		<-drained
		for range 5 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}

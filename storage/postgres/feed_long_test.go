//go:build long

package postgres_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// While many transactions write at once, some of them staying open, a reader of the feed
// sees every committed event once, and no other.
func TestFeedMissesNothing(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	var (
		mu        sync.Mutex
		committed = make(map[formsvc.ID]bool)
		writers   sync.WaitGroup
	)
	commit := func(ids ...formsvc.ID) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			committed[id] = true
		}
	}
	for i := range uint64(8) {
		random := rand.New(rand.NewPCG(1, i))
		writers.Go(func() {
			for range 40 {
				if i%2 == 0 {
					commit(f.add(f.svc))
					continue
				}
				tx, svc := f.begin()
				ids := []formsvc.ID{f.add(svc)}
				time.Sleep(time.Duration(random.IntN(10_000)) * time.Microsecond)
				ids = append(ids, f.add(svc))
				if random.IntN(4) == 0 {
					_ = tx.Rollback()
				} else if err := tx.Commit(); err != nil {
					t.Error(err)
				} else {
					commit(ids...)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		writers.Wait()
		close(done)
	}()
	seen := make(map[formsvc.ID]bool)
	var after formsvc.EventPosition
	follow := func() {
		for _, id := range f.read(&after, 7) {
			if seen[id] {
				t.Errorf("the event of response %s was seen twice", id)
			}
			seen[id] = true
		}
	}
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
			follow()
		}
	}
	// This event is the last one in the feed.
	last := f.add(f.svc)
	commit(last)
	for !seen[last] {
		follow()
	}
	for id := range committed {
		if !seen[id] {
			t.Errorf("the event of response %s was missed", id)
		}
	}
	if len(seen) > len(committed) {
		t.Errorf("%d events seen, %d committed", len(seen), len(committed))
	}
}

package bunstore

import (
	"context"
	"slices"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
)

// A member is what one of a group has to do with the group.
type member struct {
	signal chan struct{}
	taken  bool // a group has it
	leader bool // it leads the next group
}

func (m *member) membership() *member { return m }

// A joiner is what has a member in it.
type joiner interface {
	comparable
	membership() *member
}

// A grouper has concurrent calls share what costs as much for many as for one:
// a commit, a round trip. There is no timer and no goroutine of its own: a
// caller becomes a leader, unless there are enough of them, and runs a group;
// who arrives meanwhile waits, and the first of them leads the next group. So a
// lone call runs at once, and groups grow with the load.
type grouper[T joiner] struct {
	run     func(ctx context.Context, group []T) // ctx is that of who leads
	gather  func()                               // lets others come before a group is taken; nil: nothing
	limit   int                                  // members of a group
	leaders int                                  // groups that run at once

	mu      sync.Mutex
	waiting []T
	leading int
	closed  bool
	idle    sync.Cond // on mu: leading became 0
}

func newGrouper[T joiner](limit, leaders int, gather func(), run func(context.Context, []T)) *grouper[T] {
	g := &grouper[T]{run: run, gather: gather, limit: limit, leaders: leaders}
	g.idle.L = &g.mu
	return g
}

// do returns when a group with x in it has run. When ctx ends while x still
// waits, x is withdrawn and ctx's error returned; once x is in a group, do waits
// for what becomes of it.
func (g *grouper[T]) do(ctx context.Context, x T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return formsvc.ErrStoreClosed
	}
	g.waiting = append(g.waiting, x)
	if g.leading < g.leaders {
		g.leading++
		g.lead(ctx, x)
		return nil
	}
	m := x.membership()
	m.signal = make(chan struct{}, 1)
	g.mu.Unlock()

	select {
	case <-m.signal:
	case <-ctx.Done():
		if g.withdraw(x) {
			return ctx.Err()
		}
		<-m.signal
	}
	g.mu.Lock()
	if m.leader && !m.taken {
		g.lead(ctx, x)
		return nil
	}
	g.mu.Unlock()
	return nil
}

// withdraw takes x out of the queue unless a group has it already.
func (g *grouper[T]) withdraw(x T) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := x.membership()
	if m.taken {
		return false
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(w T) bool { return w == x })
	if m.leader {
		g.promote()
	}
	return true
}

// lead runs one group, with self in it, and hands the lead on, however run ends. It is
// called with mu held and returns with mu released.
func (g *grouper[T]) lead(ctx context.Context, self T) {
	if g.gather != nil {
		g.mu.Unlock()
		g.gather()
		g.mu.Lock()
	}
	group := g.assemble(self)
	g.mu.Unlock()

	defer func() {
		g.mu.Lock()
		g.promote()
		g.mu.Unlock()
		for _, x := range group {
			if x != self {
				x.membership().signal <- struct{}{}
			}
		}
	}()
	g.run(ctx, group)
}

// assemble returns a group with self in it. Who leads another one stays for that. It
// is called with mu held.
func (g *grouper[T]) assemble(self T) []T {
	group := make([]T, 0, min(len(g.waiting), g.limit))
	room := cap(group) - 1 // one is for self
	g.waiting = slices.DeleteFunc(g.waiting, func(x T) bool {
		m := x.membership()
		if x != self {
			if m.leader || room == 0 {
				return false
			}
			room--
		}
		m.taken = true
		group = append(group, x)
		return true
	})
	return group
}

// promote hands the lead to the first who waits and doesn't lead yet. It is
// called with mu held.
func (g *grouper[T]) promote() {
	for _, x := range g.waiting {
		if m := x.membership(); !m.leader {
			m.leader = true
			m.signal <- struct{}{}
			return
		}
	}
	g.leading--
	if g.leading == 0 {
		g.idle.Broadcast()
	}
}

// close refuses new calls and returns when the waiting ones have run.
func (g *grouper[T]) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.leading > 0 {
		g.idle.Wait()
	}
}

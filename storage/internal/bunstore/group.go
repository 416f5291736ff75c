package bunstore

import (
	"context"
	"slices"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
)

// A member is the state of one call in a group.
type member struct {
	signal chan struct{}
	taken  bool // a group has taken it
	leader bool // it leads the next group
}

func (m *member) membership() *member { return m }

// A joiner is a call that embeds a member.
type joiner interface {
	comparable
	membership() *member
}

// A grouper runs concurrent calls in groups, for work that costs as much for many calls
// as for one: a commit, a round trip. It has no timer and no goroutine. A caller becomes
// a leader, unless there are enough leaders, and runs a group. Calls that arrive
// meanwhile are queued, and the first of them leads the next group. So a lone call runs
// at once, and groups grow with the load.
//
// If calls may be abandoned, each group runs in a goroutine of its own, and a call returns
// when its context ends, though its group is under way.
type grouper[T joiner] struct {
	run     func(ctx context.Context, group []T) // ctx is the leader's
	abandon bool                                 // whether calls may be abandoned; run must not panic
	gather  func()                               // waits for more calls before a group is assembled; nil: doesn't wait
	limit   int                                  // most members of a group
	leaders int                                  // most groups that run at once

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

// do returns when a group with x in it has run. If ctx ends while x is queued, x is
// withdrawn and ctx's error is returned. Once x is in a group, do waits for the outcome,
// unless calls may be abandoned: then x is the group's for good.
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
	leads := g.leading < g.leaders
	if leads {
		g.leading++
		if !g.abandon {
			g.lead(ctx, x)
			return nil
		}
	}
	m := x.membership()
	m.signal = make(chan struct{}, 1)
	m.leader = leads // so that no other group takes it
	g.mu.Unlock()
	if leads {
		return g.leadAside(ctx, x)
	}

	select {
	case <-m.signal:
	case <-ctx.Done():
		if g.withdraw(x) || g.abandon {
			return ctx.Err()
		}
		<-m.signal
	}
	g.mu.Lock()
	if !m.leader || m.taken {
		g.mu.Unlock()
		return nil
	}
	if !g.abandon {
		g.lead(ctx, x)
		return nil
	}
	g.mu.Unlock()
	return g.leadAside(ctx, x)
}

// leadAside leads a group in a goroutine, and returns when it has run or ctx ends.
func (g *grouper[T]) leadAside(ctx context.Context, x T) error {
	go func() {
		g.mu.Lock()
		g.lead(context.WithoutCancel(ctx), x)
	}()
	select {
	case <-x.membership().signal:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withdraw removes x from the queue, unless a group has taken it.
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

// lead runs one group, with self in it, and then hands on the lead, however run ends. It
// is called with mu held and returns with mu released.
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
			if x != self || g.abandon {
				x.membership().signal <- struct{}{}
			}
		}
	}()
	g.run(ctx, group)
}

// assemble returns a group with self in it. Leaders of other groups stay queued. It is
// called with mu held.
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

// promote makes the first queued call that isn't a leader one. It is called with mu held.
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

// close refuses new calls and returns when the queued ones have run.
func (g *grouper[T]) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.leading > 0 {
		g.idle.Wait()
	}
}

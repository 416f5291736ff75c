package bunstore

import (
	"context"
	"slices"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
)

// A grouper runs concurrent units in groups, because a commit costs as much for many of
// them as for one. It has no timer and no goroutine. A caller that finds no group under
// way leads one. Units that arrive meanwhile are queued, and the caller of the first of
// them leads the next group. So a lone unit runs at once, and groups grow with the load.
type grouper struct {
	run    func(group []*Unit)
	gather func() // waits for more units before a group is assembled; nil: doesn't wait
	limit  int    // most units of a group

	mu      sync.Mutex
	waiting []*Unit
	running int  // groups, and units that run alone
	led     bool // a group is under way
	closed  bool
	idle    sync.Cond // on mu: running became 0
}

// A member is the state of one unit in a grouper.
type member struct {
	signal chan struct{} // its group has run, or leads
	leads  bool          // the next group
}

func newGrouper(limit int, gather func(), run func([]*Unit)) *grouper {
	g := &grouper{run: run, gather: gather, limit: limit}
	g.idle.L = &g.mu
	return g
}

// do returns when a group with u in it has run. If ctx ends while u is queued, u is
// withdrawn and ctx's error is returned. Once u is in a group, do waits for the outcome.
func (g *grouper) do(ctx context.Context, u *Unit) error {
	if err := g.begin(ctx); err != nil {
		return err
	}
	if g.led {
		u.signal = make(chan struct{}, 1)
		g.waiting = append(g.waiting, u)
		g.mu.Unlock()
		select {
		case <-u.signal:
		case <-ctx.Done():
			if g.withdraw(u) {
				return ctx.Err()
			}
			<-u.signal
		}
		if !u.leads {
			return nil
		}
	} else {
		g.led = true
		g.running++
		g.mu.Unlock()
	}
	g.lead(u)
	return nil
}

// alone runs a function as soon as it is called, unless g is closed.
func (g *grouper) alone(ctx context.Context, run func()) error {
	if err := g.begin(ctx); err != nil {
		return err
	}
	g.running++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.ended()
	}()
	run()
	return nil
}

// begin returns with mu held, or why nothing may begin.
func (g *grouper) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return formsvc.ErrStoreClosed
	}
	return nil
}

// ended notes that a group has ended. It is called with mu held.
func (g *grouper) ended() {
	if g.running--; g.running == 0 {
		g.idle.Broadcast()
	}
}

// withdraw removes u from the queue, unless it is in a group.
func (g *grouper) withdraw(u *Unit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting, u)
	if at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
	}
	return at >= 0
}

// lead runs a group that begins with u, and hands on the lead, however the group ends.
func (g *grouper) lead(u *Unit) {
	if g.gather != nil {
		g.gather()
	}
	g.mu.Lock()
	n := min(len(g.waiting), g.limit-1)
	group := append(append(make([]*Unit, 0, n+1), u), g.waiting[:n]...)
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, x := range group[1:] {
			x.signal <- struct{}{}
		}
		if len(g.waiting) == 0 {
			g.led = false
			g.ended()
			return
		}
		next := g.waiting[0]
		g.waiting = slices.Delete(g.waiting, 0, 1)
		next.leads = true
		next.signal <- struct{}{}
	}()
	g.run(group)
}

// close refuses new units and returns when the queued ones have run.
func (g *grouper) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.running > 0 {
		g.idle.Wait()
	}
}

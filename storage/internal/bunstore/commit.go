package bunstore

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A Unit is one write: all of it happens, or none.
type Unit struct {
	// Exactly one of these says what to write. Creation is kept apart since a
	// group writes all its creations with the same few statements.
	Creation *Creation
	Do       func(ctx context.Context, c bun.IConn) error
	// Single says that Do is one statement, or atomic by itself, on a database
	// where statements are transactions; else it is run in one.
	Single bool

	Err  error // what became of the unit
	Wake bool  // whether the unit left deliveries to send

	panicked any
	signal   chan struct{}
	taken    bool
	leader   bool
}

// A Creation is a new response.
type Creation struct {
	Response        formsvc.Response
	CampaignVersion int64
	Change          formsvc.Change
}

// A committer carries concurrent units in one commit. There is no timer and no
// goroutine of its own: the first caller becomes the leader and commits what is
// waiting; who arrives meanwhile waits, and the first of them leads the next
// group. So a lone unit commits at once, and the group grows with the load.
type committer struct {
	run    func([]*Unit) // commits a group and sets Err and Wake of each unit
	gather func()        // lets others come before a group is taken; nil: nothing
	limit  int           // units in a group

	mu      sync.Mutex
	waiting []*Unit
	leading bool
	closed  bool
	idle    sync.Cond // on mu: leading became false
}

func newCommitter(limit int, gather func(), run func([]*Unit)) *committer {
	g := &committer{run: run, gather: gather, limit: limit}
	g.idle.L = &g.mu
	return g
}

// commit returns when u is committed or has failed. When ctx ends while u still
// waits, u is withdrawn and ctx's error returned; once u is in a group, commit
// waits for what becomes of it.
func (g *committer) commit(ctx context.Context, u *Unit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return formsvc.ErrStoreClosed
	}
	g.waiting = append(g.waiting, u)
	if !g.leading {
		g.leading = true
		g.lead(u)
		return u.Err
	}
	u.signal = make(chan struct{}, 1)
	g.mu.Unlock()

	select {
	case <-u.signal:
	case <-ctx.Done():
		if g.withdraw(u) {
			return ctx.Err()
		}
		<-u.signal
	}
	g.mu.Lock()
	if u.leader && !u.taken {
		g.lead(u)
		return u.Err
	}
	g.mu.Unlock()
	return u.Err
}

// withdraw takes u out of the queue unless a group has it already.
func (g *committer) withdraw(u *Unit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u.taken {
		return false
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(w *Unit) bool { return w == u })
	if u.leader {
		g.promote()
	}
	return true
}

// lead commits one group, with self in it, and hands the lead on. It is called
// with mu held and returns with mu released.
func (g *committer) lead(self *Unit) {
	if g.gather != nil {
		g.mu.Unlock()
		g.gather()
		g.mu.Lock()
	}
	n := min(len(g.waiting), g.limit)
	group := slices.Clone(g.waiting[:n])
	rest := copy(g.waiting, g.waiting[n:])
	clear(g.waiting[rest:])
	g.waiting = g.waiting[:rest]
	for _, u := range group {
		u.taken = true
	}
	g.mu.Unlock()

	g.run(group)

	g.mu.Lock()
	g.promote()
	g.mu.Unlock()
	for _, u := range group {
		if u != self {
			u.signal <- struct{}{}
		}
	}
}

// promote makes the first waiting unit the leader. It is called with mu held.
func (g *committer) promote() {
	if len(g.waiting) == 0 {
		g.leading = false
		g.idle.Broadcast()
		return
	}
	next := g.waiting[0]
	next.leader = true
	next.signal <- struct{}{}
}

// close refuses new units and returns when the waiting ones are committed.
func (g *committer) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.leading {
		g.idle.Wait()
	}
}

// Attempt runs the unit's function on c, inside whatever transaction c is in.
func (u *Unit) Attempt(ctx context.Context, c bun.IConn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			u.panicked = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
			err = fmt.Errorf("bunstore: panic in a unit: %v", p)
		}
	}()
	return u.Do(ctx, c)
}

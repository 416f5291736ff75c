// Package gate shares slots, memory and time among the clients of the API, the console and the public forms.
package gate

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/httpx/internal/limits"
)

// Reasons for refusing a request that is beyond a limit.
var (
	ErrCrowded = errors.New("request queue is full")
	ErrNoSlot  = errors.New("no slot became free in time")
	ErrBytes   = errors.New("bodies have as many bytes together as they may")
)

// A Gate limits concurrent requests and shares its slots among tenants: accounts, or addresses without a key that is known. A tenant
// gets a slot only while it holds fewer than are free. So one alone holds half of them, and the next one finds the other half. The
// same holds for the queue. Of the tenants with a waiting request, the one with the fewest slots is next. A Gate is safe for concurrent
// use.
type Gate struct {
	wait time.Duration // the longest time in the queue
	room int           // how many requests may wait

	mu      sync.Mutex
	free    int
	waiting int
	lines   map[string]*line // of tenants with a slot or a waiting request
	queue   []*line          // those with a waiting request, the next one first
	turns   uint64
}

// A body from longAt delays the writes of all accounts by its own, for tens of milliseconds. So while requests of accounts that aren't
// heavy are in progress, an account may write such bodies for one longShare-th of the time.
const (
	longAt    = 1 << 20
	longShare = 10
)

// A line is the requests of a tenant.
type line struct {
	tenant  string
	held    int       // slots
	waiting list.List // of chan struct{}, which are closed when the request gets a slot
	turn    uint64    // since when it waits for its next slot, in turns of the gate; no two in the queue have the same
}

// compare orders lines by the fewest slots, and equal ones by the longest wait.
func (l *line) compare(other *line) int {
	return cmp.Or(cmp.Compare(l.held, other.held), cmp.Compare(l.turn, other.turn))
}

// A Slot of a gate. The zero value is none.
type Slot struct {
	gate  *Gate
	line  *line
	pause func() time.Duration // how long the tenant doesn't get it back; nil: not at all
}

// New returns a gate with that many slots. At most room requests wait for one, each for at most wait.
func New(slots, room int, wait time.Duration) *Gate {
	return &Gate{free: slots, room: room, wait: wait, lines: make(map[string]*line)}
}

// Acquire takes a slot, and waits for one if none is free. The caller must release it.
func (g *Gate) Acquire(ctx context.Context, tenant string) (Slot, error) {
	g.mu.Lock()
	l := g.lines[tenant]
	if l == nil {
		l = &line{tenant: tenant}
		g.lines[tenant] = l
	}
	if l.waiting.Len() == 0 && l.held < g.free {
		g.free--
		l.held++
		g.mu.Unlock()
		return Slot{gate: g, line: l}, nil
	}
	if l.waiting.Len() >= g.room-g.waiting {
		g.forget(l)
		g.mu.Unlock()
		return Slot{}, ErrCrowded
	}
	turn := make(chan struct{})
	at := l.waiting.PushBack(turn)
	g.waiting++
	if l.waiting.Len() == 1 {
		g.turns++
		l.turn = g.turns
		g.enqueue(l)
	}
	g.mu.Unlock()

	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	select {
	case <-turn:
		return Slot{gate: g, line: l}, nil
	case <-timer.C:
		return Slot{}, g.giveUp(l, at, ErrNoSlot)
	case <-ctx.Done():
		return Slot{}, g.giveUp(l, at, ctx.Err())
	}
}

// giveUp leaves the queue, and gives the slot back if it was assigned meanwhile.
func (g *Gate) giveUp(l *line, at *list.Element, why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	turn, _ := at.Value.(chan struct{})
	select {
	case <-turn:
		g.take(l)
	default:
		g.dequeue(l)
		l.waiting.Remove(at)
		g.waiting--
		g.enqueue(l)
		g.forget(l)
	}
	return why
}

// Release gives the slot back, unless that was done before.
func (s *Slot) Release() {
	if s.gate == nil {
		return
	}
	g, l, pause := s.gate, s.line, s.pause
	take := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.take(l)
	}
	*s = Slot{}
	if pause == nil {
		take()
	} else {
		time.AfterFunc(pause(), take)
	}
}

// Shared reports whether another tenant has a slot or waits for one.
func (g *Gate) Shared(tenant string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lines) > 1 || len(g.lines) == 1 && g.lines[tenant] == nil
}

// PauseAfter makes the tenant wait for its slot after a long write of that many bytes, if others use the gate among then, see longAt.
// The work begins now.
func (s *Slot) PauseAfter(bytes int, among *Gate) {
	if bytes < longAt || s.gate == nil {
		return
	}
	tenant, began := s.line.tenant, time.Now()
	s.pause = func() time.Duration {
		if !among.Shared(tenant) {
			return 0
		}
		return (longShare - 1) * time.Since(began)
	}
}

// Rest makes the slot stay taken after its release for that many times as long as the work took, which begins now.
func (s *Slot) Rest(times time.Duration) {
	began := time.Now()
	s.pause = func() time.Duration { return times * time.Since(began) }
}

// take takes a slot back, and serves waiting requests.
func (g *Gate) take(l *line) {
	g.dequeue(l)
	l.held--
	g.free++
	g.enqueue(l)
	for len(g.queue) > 0 && g.queue[0].held < g.free {
		g.serve(g.queue[0])
	}
	g.forget(l)
}

// serve gives a slot to the line's first request.
func (g *Gate) serve(l *line) {
	g.dequeue(l)
	g.turns++
	l.turn = g.turns
	l.held++
	g.free--
	turn, _ := l.waiting.Remove(l.waiting.Front()).(chan struct{})
	g.waiting--
	g.enqueue(l)
	close(turn)
}

// dequeue takes a line out of the queue, if it is there, before it changes.
func (g *Gate) dequeue(l *line) {
	if at, ok := slices.BinarySearchFunc(g.queue, l, (*line).compare); ok {
		g.queue = slices.Delete(g.queue, at, at+1)
	}
}

// enqueue puts a line that has a waiting request at its place in the queue.
func (g *Gate) enqueue(l *line) {
	if l.waiting.Len() > 0 {
		at, _ := slices.BinarySearchFunc(g.queue, l, (*line).compare)
		g.queue = slices.Insert(g.queue, at, l)
	}
}

// forget drops a line that is not in use.
func (g *Gate) forget(l *line) {
	if l.held == 0 && l.waiting.Len() == 0 {
		delete(g.lines, l.tenant)
	}
}

// Waiting returns how many requests wait for a slot.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// Bounds are the limits of concurrent work.
type Bounds struct {
	Requests, Waiting, Transfers int
	Wait                         time.Duration
	Body, Memory                 int64
}

// Shared has the gates and pools of one process. It is safe for concurrent use.
type Shared struct {
	Bounds

	Lookups      *Gate                   // limits look-ups of keys and quotas
	Requests     *Gate                   // limits requests that need a key, and forms, except those of the next two
	Lists        *Gate                   // limits lists and pages
	Heavy        *Gate                   // limits all requests of heavy accounts
	Exports      *Gate                   // limits exports while they read and format
	Transfers    *limits.Pool            // of slots for file transfers
	ExportWeight int64                   // how many of them an export takes
	Bytes        *limits.Pool            // of bodies
	heavy        limits.Recent[struct{}] // accounts that recently sent or got a large body
}

// NewShared returns gates and pools of those sizes.
func NewShared(b Bounds) *Shared {
	slots := func(n int) *Gate { return New(min(b.Requests, n), b.Waiting, b.Wait) }
	transfers := int64(b.Transfers)
	return &Shared{
		Bounds: b, Lookups: slots(b.Requests), Requests: slots(b.Requests), Lists: slots(listSlots()), Heavy: slots(heavySlots()),
		Exports: New(heavySlots(), b.Transfers, exportTurn), Transfers: limits.NewPool(transfers), ExportWeight: max(1, transfers/exportsAtMost),
		Bytes: limits.NewPool(max(b.Memory, 2*b.Body)), heavy: limits.NewRecent[struct{}](limits.Size),
	}
}

// exportsAtMost is how many exports take all slots of transfers: each holds records of up to 4 MiB, and works all the time.
const exportsAtMost = 32

// exportTurn is how long an export may wait for its turn. Each lasts for some milliseconds.
const exportTurn = time.Minute

// heavyAt is the size of a body from which an account counts as heavy, for heavyFor.
const (
	heavyAt  = 256 << 10
	heavyFor = time.Minute
)

// Moved tells that an account sent or got a body of that many bytes.
func (s *Shared) Moved(account string, bytes int64, now time.Time) {
	if bytes >= heavyAt {
		s.heavy.Put(account, struct{}{}, now.Add(heavyFor))
	}
}

// How many lists and how many requests of heavy accounts are served at once. Each may hold a page of 4 MiB and its records, and keeps a
// processor busy for milliseconds.
func listSlots() int  { return max(4, 2*runtime.GOMAXPROCS(0)) }
func heavySlots() int { return max(2, runtime.GOMAXPROCS(0)) }

// For returns the gate for a request of an account. Lists, and all requests of accounts whose bodies were large, have slots of their own.
// They are few, since such requests take memory and processors, of which a gate knows nothing.
func (s *Shared) For(account string, list bool, now time.Time) *Gate {
	if _, heavy := s.heavy.Get(account, now); heavy {
		return s.Heavy
	}
	if list {
		return s.Lists
	}
	return s.Requests
}

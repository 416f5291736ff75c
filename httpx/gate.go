package httpx

import (
	"container/heap"
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Reasons for refusing a request that is beyond a limit.
var (
	errCrowded = errors.New("as many requests wait as may")
	errNoSlot  = errors.New("no slot became free in time")
	errBodies  = errors.New("bodies have as many bytes together as they may")
)

// A gate limits concurrent requests and shares its slots among tenants: accounts, or addresses without a key that is known. A tenant
// gets a slot only while it holds fewer than are free. So one alone holds half of them, and the next one finds the other half. The
// same holds for the queue. Of the tenants with a waiting request, the one with the fewest slots is next. A gate is safe for concurrent
// use.
type gate struct {
	wait time.Duration // the longest time in the queue
	room int           // how many requests may wait

	mu      sync.Mutex
	free    int
	waiting int
	lines   map[string]*line // of tenants with a slot or a waiting request
	queue   lineHeap         // those with a waiting request
	turns   uint64
}

// A line is the requests of a tenant.
type line struct {
	tenant  string
	held    int       // slots
	waiting list.List // of chan struct{}, which are closed when the request gets a slot
	turn    uint64    // since when it waits for its next slot, in turns of the gate
	index   int       // in the heap; -1 if no request waits
}

// A slot of a gate. The zero value is none.
type slot struct {
	gate *gate
	line *line
}

func newGate(slots, room int, wait time.Duration) *gate {
	return &gate{free: slots, room: room, wait: wait, lines: make(map[string]*line)}
}

// acquire takes a slot, and waits for one if none is free. The caller must release it.
func (g *gate) acquire(ctx context.Context, tenant string) (slot, error) {
	g.mu.Lock()
	l := g.lines[tenant]
	if l == nil {
		l = &line{tenant: tenant, index: -1}
		g.lines[tenant] = l
	}
	if l.index < 0 && l.held < g.free {
		g.free--
		l.held++
		g.mu.Unlock()
		return slot{g, l}, nil
	}
	if l.waiting.Len() >= g.room-g.waiting {
		g.forget(l)
		g.mu.Unlock()
		return slot{}, errCrowded
	}
	turn := make(chan struct{})
	at := l.waiting.PushBack(turn)
	g.waiting++
	if l.index < 0 {
		g.turns++
		l.turn = g.turns
		heap.Push(&g.queue, l)
	}
	g.mu.Unlock()

	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	select {
	case <-turn:
		return slot{g, l}, nil
	case <-timer.C:
		return slot{}, g.giveUp(l, at, errNoSlot)
	case <-ctx.Done():
		return slot{}, g.giveUp(l, at, ctx.Err())
	}
}

// giveUp leaves the queue, and gives the slot back if it was assigned meanwhile.
func (g *gate) giveUp(l *line, at *list.Element, why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	turn, _ := at.Value.(chan struct{})
	select {
	case <-turn:
		g.take(l)
	default:
		g.remove(l, at)
		g.forget(l)
	}
	return why
}

// release gives the slot back, unless that was done before.
func (s *slot) release() {
	if s.gate == nil {
		return
	}
	s.gate.mu.Lock()
	s.gate.take(s.line)
	s.gate.mu.Unlock()
	*s = slot{}
}

// take takes a slot back, and gives it to who is next.
func (g *gate) take(l *line) {
	l.held--
	g.free++
	if l.index >= 0 {
		heap.Fix(&g.queue, l.index)
	}
	for len(g.queue) > 0 && g.queue[0].held < g.free {
		g.serve(g.queue[0])
	}
	g.forget(l)
}

// serve gives a slot to the line's first request.
func (g *gate) serve(l *line) {
	first := l.waiting.Front()
	turn, _ := first.Value.(chan struct{})
	g.turns++
	l.turn = g.turns
	l.held++
	g.free--
	heap.Fix(&g.queue, l.index)
	g.remove(l, first)
	close(turn)
}

// remove takes a request out of the queue.
func (g *gate) remove(l *line, at *list.Element) {
	l.waiting.Remove(at)
	g.waiting--
	if l.waiting.Len() == 0 {
		heap.Remove(&g.queue, l.index)
	}
}

// forget drops a line that is not in use.
func (g *gate) forget(l *line) {
	if l.held == 0 && l.index < 0 {
		delete(g.lines, l.tenant)
	}
}

// lineHeap has the line with the fewest slots first, and among equal ones the one that waits the longest.
type lineHeap []*line

func (h lineHeap) Len() int { return len(h) }

func (h lineHeap) Less(i, j int) bool {
	if h[i].held != h[j].held {
		return h[i].held < h[j].held
	}
	return h[i].turn < h[j].turn
}

func (h lineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *lineHeap) Push(x any) {
	l, _ := x.(*line)
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *lineHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.index = -1
	return l
}

// A pool shares bytes or places that are held for as long as a client likes. As with a gate, an account gets more only while it holds
// less than is free. A pool is safe for concurrent use.
type pool struct {
	mu   sync.Mutex
	free int64 // negative if take was forced
	held map[string]int64
}

func newPool(n int64) *pool { return &pool{free: n, held: make(map[string]int64)} }

// take reserves n for an account, and reports whether it could.
func (p *pool) take(account string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.free || p.held[account] >= p.free {
		return false
	}
	p.add(account, n)
	return true
}

// force reserves n even if it isn't free.
func (p *pool) force(account string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(account, n)
}

// give frees n.
func (p *pool) give(account string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(account, -n)
}

func (p *pool) add(account string, n int64) {
	p.free -= n
	if held := p.held[account] + n; held != 0 {
		p.held[account] = held
	} else {
		delete(p.held, account)
	}
}

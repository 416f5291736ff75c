package httpx

import (
	"container/heap"
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
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
	gate  *gate
	line  *line
	pause func() time.Duration // how long the tenant doesn't get it back; nil: not at all
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
		return slot{gate: g, line: l}, nil
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
		return slot{gate: g, line: l}, nil
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
	g, l, pause := s.gate, s.line, s.pause
	take := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.take(l)
	}
	*s = slot{}
	if pause == nil {
		take()
	} else {
		time.AfterFunc(pause(), take)
	}
}

// shared reports whether another tenant has a slot or waits for one.
func (g *gate) shared(tenant string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lines) > 1 || len(g.lines) == 1 && g.lines[tenant] == nil
}

// take takes a slot back, and serves waiting requests.
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

// heavyAt is the size of a body from which an account counts as heavy, for heavyFor.
const (
	heavyAt  = 256 << 10
	heavyFor = time.Minute
)

// A body from longAt delays the writes of all accounts by its own, for tens of milliseconds. So while requests of accounts that aren't
// heavy are in progress, an account may write such bodies for one longShare-th of the time.
const (
	longAt    = 1 << 20
	longShare = 10
)

// pauseAfter returns the pause after a request whose work begins now.
func (h *Handler) pauseAfter(c *call) func() time.Duration {
	if len(c.body.raw) < longAt {
		return nil
	}
	account, began := string(c.who.AccountID), time.Now()
	return func() time.Duration {
		if !h.gate.shared(account) {
			return 0
		}
		return (longShare - 1) * time.Since(began)
	}
}

// How many lists and how many requests of heavy accounts are served at once. Each may hold a page of 4 MiB and its records, and keeps a
// processor busy for milliseconds.
func listSlots() int  { return max(4, 2*runtime.GOMAXPROCS(0)) }
func heavySlots() int { return max(2, runtime.GOMAXPROCS(0)) }

// gateOf returns the gate for a request. Lists, and all requests of accounts whose bodies were large, have slots of their own. They are
// few, since such requests take memory and processors, of which a gate knows nothing.
func (h *Handler) gateOf(r *route, account string) *gate {
	if _, heavy := h.heavy.Get(account, h.now()); heavy {
		return h.heavyGate
	}
	if r.list {
		return h.listGate
	}
	return h.gate
}

// refusalsEvery is the shortest time between two log records about refused requests: one for each would add load.
const refusalsEvery = 10 * time.Second

// overloaded returns the problem for a request beyond a limit. If the request waited, its connection stays open, since
// a new one costs more than the reply. If it didn't wait, the connection is closed: the client would use it to retry at once.
func (h *Handler) overloaded(c *call, why error) error {
	if err := c.r.Context().Err(); err != nil {
		p := problemOf(c.r.Context(), err)
		p.overload = true
		return p
	}
	h.refused.Add(1)
	due := false
	h.refusals.Do(func() { due = true }) // which locks, so the logger must not run there
	if due {
		h.logger.LogAttrs(c.r.Context(), slog.LevelWarn, "overloaded: requests were refused", slog.Int64("requests", h.refused.Swap(0)))
	}
	return &problem{
		status: http.StatusServiceUnavailable, code: "unavailable", cause: why,
		told: true, overload: true, hangUp: !errors.Is(why, errNoSlot),
		detail: "The service is overloaded. Nothing was changed; retry.",
	}
}

package httpx

import (
	"container/list"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// freeBody is how many bytes of every body don't count for [Options.MaxBodies].
const freeBody = 16 << 10

// refusalsEvery is how often the log is told of refused requests at most.
const refusalsEvery = 10 * time.Second

// Why a request is refused for want of room.
var (
	errCrowded = errors.New("as many requests wait as may")
	errNoPlace = errors.New("no place became free in time")
	errBodies  = errors.New("bodies have as many bytes together as they may")
)

// A gate has places for requests that are worked on, and a bounded line before it. Who
// comes back, having been in before, goes first: work was done for him already, and
// what he read is in memory. It is safe for concurrent use.
type gate struct {
	wait time.Duration // the longest anybody waits
	room int           // how many newcomers may wait

	mu       sync.Mutex
	free     int // not above 0 while anybody waits
	newcomer list.List
	returner list.List // of *waiter, both
}

// A waiter stands in line.
type waiter struct {
	line *list.List
	turn chan struct{} // closed when the place is his
}

func newGate(places, room int, wait time.Duration) *gate {
	return &gate{free: places, room: room, wait: wait}
}

// enter takes a place, and waits for one if need be. Whoever got one leaves.
func (g *gate) enter(ctx context.Context, back bool) error {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	w := &waiter{line: &g.newcomer, turn: make(chan struct{})}
	if back {
		w.line = &g.returner
	} else if g.newcomer.Len() >= g.room {
		g.mu.Unlock()
		return errCrowded
	}
	at := w.line.PushBack(w)
	g.mu.Unlock()

	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	select {
	case <-w.turn:
		return nil
	case <-timer.C:
		return g.giveUp(at, w, errNoPlace)
	case <-ctx.Done():
		return g.giveUp(at, w, ctx.Err())
	}
}

// giveUp leaves the line, and the place if it was given meanwhile.
func (g *gate) giveUp(at *list.Element, w *waiter, why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.turn:
		g.next()
	default:
		w.line.Remove(at)
	}
	return why
}

// leave gives a place back.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next()
}

// next gives a place to whoever has waited longest. The lock is held.
func (g *gate) next() {
	line := &g.returner
	if line.Len() == 0 {
		line = &g.newcomer
	}
	first := line.Front()
	if first == nil {
		g.free++
		return
	}
	line.Remove(first)
	if w, ok := first.Value.(*waiter); ok {
		close(w.turn)
	}
}

// enter takes the call's place. What is refused here has cost nothing and changed
// nothing: nobody has looked at its key or read its body.
func (h *Handler) enter(c *call) error {
	if err := h.gate.enter(c.r.Context(), false); err != nil {
		return h.overloaded(c, err)
	}
	c.place = h.gate
	return nil
}

// leave gives the call's place back, if it has one.
func (c *call) leave() {
	if c.place != nil {
		c.place.leave()
		c.place = nil
	}
}

// comeBack takes a place again after the call waited for its client. A request that
// gets none was counted, which is taken back.
func (h *Handler) comeBack(c *call) error {
	if err := h.gate.enter(c.r.Context(), true); err != nil {
		h.uncount(c)
		return h.overloaded(c, err)
	}
	c.place = h.gate
	return nil
}

// overloaded returns how a request is answered that there is no room for. Who waited
// keeps his connection, since a new one costs more than the answer; who didn't would
// use it to ask again at once.
func (h *Handler) overloaded(c *call, why error) error {
	if c.r.Context().Err() != nil {
		return why
	}
	h.refusals.tell(c.r.Context(), h.logger, h.now())
	return &problem{
		status: http.StatusServiceUnavailable, code: "unavailable", cause: why, told: true, hangUp: !errors.Is(why, errNoPlace),
		detail: "More requests have come than the service can take now. Nothing was changed; try again.",
	}
}

// refusals counts the requests that were refused for want of room, since a line in the
// log for each would be more load.
type refusals struct {
	since atomic.Int64 // the last line
	last  atomic.Int64 // when that was, in Unix time's nanoseconds
}

// tell logs how many there were, at most once in refusalsEvery.
func (x *refusals) tell(ctx context.Context, logger *slog.Logger, now time.Time) {
	x.since.Add(1)
	last := x.last.Load()
	if now.UnixNano()-last < int64(refusalsEvery) || !x.last.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	logger.LogAttrs(ctx, slog.LevelWarn, "overloaded: requests were refused", slog.Int64("requests", x.since.Swap(0)))
}

// bodies is the room for bodies that are being read or worked on. It is safe for
// concurrent use.
type bodies struct {
	limit int64
	used  atomic.Int64
}

// take takes so many bytes, if they are there.
func (b *bodies) take(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// give gives the bytes back.
func (b *bodies) give(n int64) { b.used.Add(-n) }

// readBody reads the body into memory. Meanwhile the call has no place, since it may
// take the client any time to send it.
func (h *Handler) readBody(c *call) error {
	if c.r.Body == nil || c.r.Body == http.NoBody {
		return nil
	}
	c.leave()
	var body io.Reader = c.r.Body
	if c.r.ContentLength < 0 || c.r.ContentLength > freeBody {
		body = &weighed{h: h, c: c}
	}
	if err := c.body.read(body, h.maxBody); err != nil {
		return err
	}
	return h.comeBack(c)
}

// A weighed body takes room for what has arrived of it. What was only announced takes
// none: that would let clients take it all by promising.
type weighed struct {
	h *Handler
	c *call
	n int64 // bytes read
}

// Read implements io.Reader.
func (w *weighed) Read(p []byte) (int, error) {
	n, err := w.c.r.Body.Read(p)
	w.n += int64(n)
	more := w.n - freeBody - w.c.weight
	if more <= 0 {
		return n, err
	}
	if !w.h.bodies.take(more) {
		w.h.uncount(w.c)
		return n, w.h.overloaded(w.c, errBodies)
	}
	w.c.weight += more
	return n, err
}

// transfer takes one of the places for files on their way, in exchange for that among
// the other requests; done gives it back.
func (h *Handler) transfer(c *call) (done func(), err error) {
	select {
	case h.transfers <- struct{}{}:
		c.leave()
		return func() { <-h.transfers }, nil
	default:
		return nil, &problem{
			status: http.StatusServiceUnavailable, code: "too_many_transfers",
			detail: "As many transfers are on their way as may be at once. Nothing was changed; try again.",
		}
	}
}

package httpx

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// freeBody is how many bytes of each body don't count for [Options.MaxMemory].
const freeBody = 16 << 10

// refusalsEvery is the shortest time between two log records about refused requests.
const refusalsEvery = 10 * time.Second

// heavyAt is the size of a body from which an account counts as heavy, for heavyFor.
const (
	heavyAt  = 256 << 10
	heavyFor = time.Minute
)

// How many lists and how many requests of heavy accounts are served at once. Each may hold a page of 4 MiB and its records, and keeps a
// processor busy for milliseconds.
func listSlots() int  { return max(4, 2*runtime.GOMAXPROCS(0)) }
func heavySlots() int { return max(2, runtime.GOMAXPROCS(0)) }

// gateOf returns the gate for a request. Lists, and all requests of accounts whose bodies were large, have slots of their own. They are
// few, since such requests take memory and processors, of which a gate knows nothing.
func (h *Handler) gateOf(r *route, account string) *gate {
	switch {
	case h.heavy.has(account, h.now()):
		return h.heavyGate
	case r.list:
		return h.listGate
	}
	return h.gate
}

// heavies are the accounts that recently sent or got a large body. It is safe for concurrent use.
type heavies struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (x *heavies) note(account string, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.until == nil || len(x.until) >= limiterSize { // forgetting one costs it nothing
		x.until = make(map[string]time.Time)
	}
	x.until[account] = now.Add(heavyFor)
}

func (x *heavies) has(account string, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	until, ok := x.until[account]
	if ok && now.After(until) {
		delete(x.until, account)
		ok = false
	}
	return ok
}

// overloaded returns the problem for a request beyond a limit. If the request waited, its connection stays open, since
// a new one costs more than the reply. If it didn't wait, the connection is closed: the client would use it to retry at once.
func (h *Handler) overloaded(c *call, why error) error {
	if c.r.Context().Err() != nil {
		return why
	}
	h.refusals.tell(c.r.Context(), h.logger, h.now())
	return &problem{
		status: http.StatusServiceUnavailable, code: "unavailable", cause: why,
		told: true, overload: true, hangUp: !errors.Is(why, errNoSlot),
		detail: "The service is overloaded. Nothing was changed; retry.",
	}
}

// refusals counts the requests refused for overload, since a log record for each would add load.
type refusals struct {
	since atomic.Int64 // the last log record
	last  atomic.Int64 // when it was written, in nanoseconds of Unix time
}

// tell logs the count, at most once in refusalsEvery.
func (x *refusals) tell(ctx context.Context, logger *slog.Logger, now time.Time) {
	x.since.Add(1)
	last := x.last.Load()
	if now.UnixNano()-last < int64(refusalsEvery) || !x.last.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	logger.LogAttrs(ctx, slog.LevelWarn, "overloaded: requests were refused", slog.Int64("requests", x.since.Swap(0)))
}

// reserve charges n bytes of the reply to the account until the client has read them, without the first 16 KiB. They include bytes that
// were reserved for the reply before. A request that changes nothing fails if they aren't free.
func (c *call) reserve(n int) error {
	more := int64(n) - freeBody - c.replies
	if more <= 0 || c.who == nil {
		return nil
	}
	bodies, account := c.h.bodies, string(c.who.AccountID)
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead && !c.idem.Repeated {
		bodies.force(account, more)
	} else if !bodies.take(account, more) {
		return c.h.overloaded(c, errBodies)
	}
	c.replies += more
	c.weight += more
	return nil
}

// release frees what the call reserved.
func (h *Handler) release(c *call) {
	if c.weight == 0 {
		return
	}
	h.bodies.give(string(c.who.AccountID), c.weight)
	if c.weight >= heavyAt {
		h.heavy.note(string(c.who.AccountID), h.now())
	}
	c.weight, c.replies = 0, 0
}

// readBody reads the body into memory. The time limit for work begins again afterwards.
func (h *Handler) readBody(c *call) error {
	if c.r.Body == nil || c.r.Body == http.NoBody {
		return nil
	}
	c.pause()
	var body io.Reader = c.r.Body
	if c.r.ContentLength < 0 || c.r.ContentLength > freeBody {
		body = &weighed{h: h, c: c}
	}
	return c.body.read(body, h.limits.Body)
}

// A weighed body reserves memory as its bytes arrive. It doesn't reserve by Content-Length: then clients could take all
// of it by announcing long bodies.
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
	if !w.h.bodies.take(string(w.c.who.AccountID), more) {
		return n, w.h.overloaded(w.c, errBodies)
	}
	w.c.weight += more
	return n, err
}

// exportsAtMost is how many exports take all places of transfers: each holds records of up to 4 MiB, and works all the time.
const exportsAtMost = 32

// transfer takes slots for a file transfer or an export; done frees them. The caller releases the call's own slot once it waits for the
// client.
func (h *Handler) transfer(c *call, weight int64) (done func(), err error) {
	account := string(c.who.AccountID)
	if !h.transfers.take(account, weight) {
		return nil, &problem{
			status: http.StatusServiceUnavailable, code: "too_many_transfers",
			detail: "The maximum number of transfers is in progress. Nothing was changed; retry.",
		}
	}
	return func() { h.transfers.give(account, weight) }, nil
}

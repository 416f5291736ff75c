package httpx

import (
	"container/heap"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A gated is a gate whose requests note in which order they get slots.
type gated struct {
	*gate
	order []string // by the request that has the slot
	group sync.WaitGroup
}

// queue sends a request that waits in the queue, as far as it doesn't get a slot, and gives its slot back at once.
func (g *gated) queue(t *testing.T, tenant, name string, back bool) {
	g.group.Go(func() {
		l, err := g.enter(t.Context(), tenant, back)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		g.order = append(g.order, name)
		g.leave(l)
	})
	synctest.Wait()
}

func (g *gated) take(t *testing.T, tenant string) *line {
	t.Helper()
	l, err := g.enter(t.Context(), tenant, false)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (g *gated) want(t *testing.T, want string) {
	t.Helper()
	g.group.Wait()
	if got := strings.Join(g.order, " "); got != want {
		t.Errorf("in the order %s, want %s", got, want)
	}
	if g.waiting != 0 || len(g.gate.queue) != 0 || len(g.lines) != 0 {
		t.Errorf("left over: %d waiting, %d in the heap, %d lines", g.waiting, len(g.gate.queue), len(g.lines))
	}
}

// Of one tenant's requests, those that held a slot before go first, the others in order of arrival.
func TestGateServesReturningRequestsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{gate: newGate(1, 20, time.Hour)}
		l := g.take(t, "a")
		for i, name := range []string{"1", "2", "3", "4", "5", "6"} {
			g.queue(t, "a", name, i >= 3)
		}
		g.leave(l)
		g.want(t, "4 5 6 1 2 3")
	})
}

// However many requests of one tenant wait, each other tenant's turn comes as often.
func TestGateTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{gate: newGate(1, 100, time.Hour)}
		l := g.take(t, "a")
		for _, name := range []string{"a1", "a2", "a3", "a4", "a5"} {
			g.queue(t, "a", name, false)
		}
		for _, name := range []string{"b1", "b2", "c1"} {
			g.queue(t, name[:1], name, false)
		}
		g.leave(l)
		g.want(t, "a1 b1 c1 a2 b2 a3 a4 a5")
	})
}

// A tenant alone gets half of the slots and half of the queue. The other halves are for others.
func TestGateKeepsSlotsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{gate: newGate(8, 8, time.Second)}
		var mu sync.Mutex
		held := make(map[string][]*line)
		refused := 0
		for range 12 {
			g.group.Go(func() {
				l, err := g.enter(t.Context(), "a", false)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					if !errors.Is(err, errCrowded) && !errors.Is(err, errNoPlace) {
						t.Error(err)
					}
					refused++
					return
				}
				held["a"] = append(held["a"], l)
			})
			synctest.Wait()
		}
		if len(held["a"]) != 4 || g.waiting != 4 || refused != 4 {
			t.Errorf("%d have slots, %d wait, %d were refused; want 4 each", len(held["a"]), g.waiting, refused)
		}
		for tenant, want := range map[string]int{"b": 2} {
			for range want {
				held[tenant] = append(held[tenant], g.take(t, tenant))
			}
		}
		if _, err := g.enter(t.Context(), "b", false); !errors.Is(err, errNoPlace) { // 2 are free
			t.Errorf("a third slot: %v", err)
		}
		held["c"] = append(held["c"], g.take(t, "c"))
		for _, lines := range held {
			for _, l := range lines {
				g.leave(l)
			}
		}
		g.want(t, "")
		if g.free != 8 {
			t.Errorf("%d slots are free", g.free)
		}
	})
}

// Whatever requests do, no slot is lost or given twice.
func TestGateKeepsCount(t *testing.T) {
	const slots = 6
	g := newGate(slots, 40, time.Millisecond)
	var (
		inside atomic.Int64
		group  sync.WaitGroup
	)
	for i := range 64 {
		group.Go(func() {
			tenant := string(rune('a' + i%5))
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 0 {
					go cancel()
				}
				if l, err := g.enter(ctx, tenant, n%2 == 0); err == nil {
					if inside.Add(1) > slots {
						t.Error("a slot was given twice")
					}
					if n%7 == 0 {
						time.Sleep(time.Millisecond)
					}
					inside.Add(-1)
					g.leave(l)
				}
				cancel()
			}
		})
	}
	group.Wait()
	if g.free != slots || g.waiting != 0 || len(g.queue) != 0 || len(g.lines) != 0 {
		t.Errorf("left over: %d free, %d waiting, %d in the heap, %d lines", g.free, g.waiting, len(g.queue), len(g.lines))
	}
}

// A request that gives up just when it gets its slot passes the slot on.
func TestGatePassesOnSlotOfCanceledRequest(t *testing.T) {
	g := newGate(1, 1, time.Hour)
	held, err := g.enter(t.Context(), "a", false)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{tenant: "b", index: -1}
	g.lines["b"] = l
	w := &waiter{turn: make(chan struct{}), in: &l.newcomer}
	w.at = l.newcomer.PushBack(w)
	g.waiting++
	heap.Push(&g.queue, l)
	g.leave(held)
	if g.free != 0 || l.held != 1 {
		t.Errorf("%d slots are free, %d held by the one that waited", g.free, l.held)
	}
	if err := g.giveUp(l, w, errNoPlace); !errors.Is(err, errNoPlace) || g.free != 1 || len(g.lines) != 0 {
		t.Errorf("%v, %d slots are free, %d lines", err, g.free, len(g.lines))
	}
}

// One account alone gets half of a pool, and others what is left.
func TestPoolShares(t *testing.T) {
	p := newPool(100)
	got := func(account string) (n int) {
		for p.take(account, 1) {
			n++
		}
		return n
	}
	if a, b, c := got("a"), got("b"), got("c"); a != 50 || b != 25 || c != 13 {
		t.Errorf("got %d, %d and %d of 100", a, b, c)
	}
	if p.take("d", 13) {
		t.Error("took more than is free")
	}
	p.force("d", 20)
	if p.take("e", 1) {
		t.Error("took what isn't free")
	}
	for account, n := range map[string]int64{"a": 50, "b": 25, "c": 13, "d": 20} {
		p.give(account, n)
	}
	if p.free != 100 || len(p.held) != 0 {
		t.Errorf("%d free, %d accounts", p.free, len(p.held))
	}
	if one := newPool(1); !one.take("a", 1) || one.take("b", 1) {
		t.Error("a pool of one")
	}
}

// The first bytes of a body reserve nothing; the rest reserves memory as it arrives.
func TestBodyReservesMemoryAsItArrives(t *testing.T) {
	h := &Handler{logger: slog.New(slog.DiscardHandler), now: time.Now, bodies: newPool(20)}
	c := &call{who: &formsvc.Principal{AccountID: "a"}, r: &http.Request{Body: io.NopCloser(strings.NewReader(strings.Repeat("x", freeBody+20)))}}
	body := &weighed{h: h, c: c}
	for _, x := range []struct{ read, weight int64 }{{freeBody, 0}, {4, 4}, {6, 10}} {
		if _, err := io.CopyN(io.Discard, body, x.read); err != nil || c.weight != x.weight || h.bodies.held["a"] != x.weight {
			t.Errorf("after %d bytes: %v, weight %d of %d, want %d", x.read, err, c.weight, h.bodies.held["a"], x.weight)
		}
	}
	_, err := body.Read(make([]byte, 1))
	if p, ok := errors.AsType[*problem](err); !ok || p.status != http.StatusServiceUnavailable || h.bodies.held["a"] != 10 {
		t.Errorf("beyond the limit: %v, %d bytes are taken", err, h.bodies.held["a"])
	}
}

// Lists have slots of their own, and so has an account for a minute after a large body, whatever it asks for; other accounts have not.
func TestWhichSlots(t *testing.T) {
	now := time.Unix(0, 0)
	h := &Handler{
		now: func() time.Time { return now }, bodies: newPool(1 << 20),
		gate: newGate(9, 9, time.Second), listGate: newGate(9, 9, time.Second), heavyGate: newGate(9, 9, time.Second),
	}
	want := func(account string, list bool, want *gate) {
		t.Helper()
		c := &call{r: new(http.Request), route: &route{list: list}}
		if err := h.enterAs(c, account); err != nil || c.gate != want || c.gate.free != 8 {
			t.Errorf("account %s, a list: %v: the wrong slots, or %v", account, list, err)
		}
		c.leave()
	}
	weigh := func(n int64) {
		c := &call{h: h, r: &http.Request{Method: http.MethodGet}, who: &formsvc.Principal{AccountID: "a"}}
		if err := c.reserve(int(n + freeBody)); err != nil {
			t.Error(err)
		}
		h.release(c)
	}
	weigh(heavyAt - 1)
	want("a", false, h.gate)
	want("a", true, h.listGate)
	weigh(heavyAt)
	for _, list := range []bool{false, true} {
		want("a", list, h.heavyGate)
	}
	want("b", false, h.gate)
	want("b", true, h.listGate)
	now = now.Add(heavyFor + 1)
	want("a", false, h.gate)
}

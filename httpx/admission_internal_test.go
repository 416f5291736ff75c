package httpx

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Whoever was in before goes first; others in the order in which they came.
func TestGateOrder(t *testing.T) {
	g := newGate(1, 10, time.Hour)
	if err := g.enter(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	var order []int // written to by whoever has the place
	var group sync.WaitGroup
	waiting := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.newcomer.Len() + g.returner.Len()
	}
	for i := range 6 {
		group.Go(func() {
			if err := g.enter(t.Context(), i >= 3); err != nil {
				t.Error(err)
				return
			}
			order = append(order, i)
			g.leave()
		})
		for waiting() != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	g.leave()
	group.Wait()
	if want := []int{3, 4, 5, 0, 1, 2}; !slices.Equal(order, want) || g.free != 1 {
		t.Errorf("in the order %v, want %v; %d places are free", order, want, g.free)
	}
}

// Who gives up just when the place becomes his passes it on.
func TestGateGivingUpTooLate(t *testing.T) {
	g := newGate(0, 1, time.Hour)
	w := &waiter{line: &g.newcomer, turn: make(chan struct{})}
	at := w.line.PushBack(w)
	g.leave()
	if err := g.giveUp(at, w, errNoPlace); !errors.Is(err, errNoPlace) || g.free != 1 {
		t.Errorf("%v, %d places are free", err, g.free)
	}
}

// The beginning of a body weighs nothing, and the rest what has arrived of it.
func TestWeighed(t *testing.T) {
	h := &Handler{logger: slog.New(slog.DiscardHandler), now: time.Now, bodies: bodies{limit: 10}}
	c := &call{r: &http.Request{Body: io.NopCloser(strings.NewReader(strings.Repeat("x", freeBody+20)))}}
	body := &weighed{h: h, c: c}
	for _, x := range []struct{ read, weight int64 }{{freeBody, 0}, {4, 4}, {6, 10}} {
		if _, err := io.CopyN(io.Discard, body, x.read); err != nil || c.weight != x.weight || h.bodies.used.Load() != x.weight {
			t.Errorf("after %d bytes: %v, weight %d of %d, want %d", x.read, err, c.weight, h.bodies.used.Load(), x.weight)
		}
	}
	_, err := body.Read(make([]byte, 1))
	if p, ok := errors.AsType[*problem](err); !ok || p.status != http.StatusServiceUnavailable || h.bodies.used.Load() != 10 {
		t.Errorf("beyond the limit: %v, %d bytes are taken", err, h.bodies.used.Load())
	}
}

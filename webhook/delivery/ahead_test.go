package delivery

import (
	"testing"
	"time"
)

// A fast is a traffic with one endpoint, a1, that answers in a millisecond, and
// all that was claimed for it.
type fastEndpoint struct {
	tr      *traffic
	h       *health
	running []*slot
	ahead   []*slot // not in line yet
}

func newFastEndpoint(t *testing.T, o Options, size int) *fastEndpoint {
	t.Helper()
	f := &fastEndpoint{tr: newTestTraffic(t, o)}
	f.tr.prove(o.PerEndpoint, "a1")
	f.h = f.tr.book("a1")
	f.h.learn(time.Millisecond)
	f.h.weigh(int64(size))
	f.claim(size)
	return f
}

// claim claims all that there is room for.
func (f *fastEndpoint) claim(size int) {
	a := newAgenda(ready("a1"))
	for {
		got := f.tr.fill(a, size)["a1"]
		if len(got) == 0 {
			return
		}
		for _, s := range got {
			if s.ahead {
				f.ahead = append(f.ahead, s)
			} else {
				f.running = append(f.running, s)
			}
		}
	}
}

// line puts everything in line and goes on.
func (f *fastEndpoint) line() (begun, back []*slot) {
	f.h.waiting = append(f.h.waiting, f.ahead...)
	f.ahead = nil
	return f.tr.next(f.h)
}

func TestClaimsAhead(t *testing.T) {
	t.Parallel()
	f := newFastEndpoint(t, Options{Concurrency: 128, PerEndpoint: 2}, 1)
	if len(f.running) != 2 || len(f.ahead) != 100 {
		t.Fatalf("%d in flight, %d ahead, want its window and what it takes %v for", len(f.running), len(f.ahead), aheadTime)
	}
	if begun, back := f.line(); len(begun)+len(back) != 0 {
		t.Fatalf("%d begun beyond the window, %d went back", len(begun), len(back))
	}
	first := f.h.waiting[0]
	for _, s := range f.running {
		if f.tr.end(s, saysYes) {
			t.Error("claims again while much is left")
		}
		f.tr.leave(s)
		begun, _ := f.tr.next(f.h)
		if len(begun) != 1 || begun[0] != first {
			t.Errorf("%d begun in the place of one, or not in order", len(begun))
		}
		first = f.h.waiting[0]
	}
	if f.tr.used[fastSlots] != 2 || f.tr.used[aheadSlots] != 98 || f.h.ahead != 98 {
		t.Errorf("used %v, %d ahead", f.tr.used, f.h.ahead)
	}
}

// It claims again when half is left, not for each request that ends.
func TestAheadIsFilledUpByHalves(t *testing.T) {
	t.Parallel()
	f := newFastEndpoint(t, Options{Concurrency: 128, PerEndpoint: 2}, 1)
	_, _ = f.line()
	news := 0
	for range 80 {
		s := f.running[0]
		s.took = time.Millisecond
		if f.tr.end(s, saysYes) {
			news++
			f.claim(1)
			_, _ = f.line()
		}
		f.tr.leave(s)
		begun, _ := f.tr.next(f.h)
		f.running = append(f.running[1:], begun...)
	}
	if news != 1 || f.h.ahead != 70 || f.h.claims != 2 {
		t.Errorf("woken %d times, %d claims, %d ahead", news, f.h.claims, f.h.ahead)
	}
}

func TestHowMuchIsClaimedAhead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(h *health)
		size  int
		want  int
	}{
		{"nothing before a success", func(h *health) { h.pace = 0 }, 1, 0},
		{"nothing without proof", func(h *health) { h.proven = false }, 1, 0},
		{"nothing beside a late request", func(h *health) { h.late = 1 }, 1, 0},
		{"little when it takes long", func(h *health) { h.pace = 20 * time.Millisecond }, 1, 10},
		{"nothing when it takes too long", func(h *health) { h.pace = time.Second }, 1, 0},
		{"at most what the fast lane has", func(h *health) { h.pace = time.Microsecond }, 1, 64},
		{"little when payloads are large", func(h *health) { h.pace = time.Microsecond }, 100_000, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := newTestTraffic(t, Options{Concurrency: 64, PerEndpoint: 4})
			tr.prove(4, "a1")
			h := tr.book("a1")
			h.learn(time.Millisecond)
			h.weigh(int64(tt.size))
			tt.spoil(h)
			a := newAgenda(ready("a1"))
			for range 3 {
				tr.fill(a, tt.size)
			}
			if h.ahead != tt.want {
				t.Errorf("%d ahead, want %d", h.ahead, tt.want)
			}
		})
	}
}

// What waits takes no slot, and nothing is claimed ahead while the lane is full.
func TestAheadTakesNobodysRoom(t *testing.T) {
	t.Parallel()
	f := newFastEndpoint(t, Options{Concurrency: 12, PerEndpoint: 2}, 1)
	_, _ = f.line()
	others := ids("b", 9)
	f.tr.prove(2, others...)
	for _, id := range others {
		f.tr.book(id).learn(time.Millisecond)
	}
	f.h.goal = 0
	got := f.tr.fill(newAgenda(ready(others...)), 1)
	if total(got) != 9 {
		t.Errorf("%d for others, want one for each", total(got))
	}
	each(got, func(s *slot) {
		if s.ahead {
			t.Error("claimed ahead in a full lane")
		}
	})
	// The lane is full: what waits goes on only where there is room.
	f.tr.end(f.running[0], saysYes)
	if begun, back := f.tr.next(f.h); len(begun)+len(back) != 0 {
		t.Errorf("%d begun, %d went back", len(begun), len(back))
	}
	f.tr.leave(f.running[0])
	if begun, back := f.tr.next(f.h); len(begun) != 1 || len(back) != 0 {
		t.Errorf("%d begun, %d went back, want one begun", len(begun), len(back))
	}
}

func TestWhatWaitsGoesBack(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(f *fastEndpoint){
		"a failure":      func(f *fastEndpoint) { f.tr.end(f.running[0], broke) },
		"a timeout":      func(f *fastEndpoint) { f.tr.end(f.running[0], tookTooLong) },
		"a late request": func(f *fastEndpoint) { f.tr.late(f.running[0]) },
		"no room, and nothing to wait for": func(f *fastEndpoint) {
			f.tr.used[fastSlots] += 200
			for _, s := range f.running {
				f.tr.end(s, saysYes)
				f.tr.leave(s)
			}
		},
	} {
		f := newFastEndpoint(t, Options{Concurrency: 128, PerEndpoint: 2}, 10)
		_, _ = f.line()
		spoil(f)
		begun, back := f.tr.next(f.h)
		if len(begun) != 0 || len(back) != 100 || len(f.h.waiting) != 0 {
			t.Errorf("%s: %d begun, %d went back", name, len(begun), len(back))
		}
		before := f.tr.used[allBytes]
		for _, s := range back {
			f.tr.end(s, saysNothing)
			f.tr.leave(s)
		}
		if f.tr.used[aheadSlots] != 0 || f.h.ahead != 0 || before-f.tr.used[allBytes] != 1000 {
			t.Errorf("%s: used %v, %d ahead", name, f.tr.used, f.h.ahead)
		}
	}
}

// What is claimed ahead was weighed by what came before.
func TestLargerPayloadsThanExpectedGoBack(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 128, PerEndpoint: 2})
	tr.prove(2, "a1")
	h := tr.book("a1")
	h.learn(time.Millisecond)
	h.weigh(1)
	a := newAgenda(ready("a1"))
	var kept, refused int
	each(tr.fill(a, 900_000), func(s *slot) {
		if s.refused {
			refused++
		} else {
			kept++
		}
	})
	if kept != 2 || refused != 100 || h.bytes != 1_800_000 || tr.used[allBytes] != 1_800_000 {
		t.Errorf("%d kept, %d refused, %d bytes", kept, refused, h.bytes)
	}
	if n := total(tr.fill(a, 900_000)); n != 0 {
		t.Errorf("%d more of them claimed ahead", n)
	}
}

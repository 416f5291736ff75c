package schedule

import (
	"testing"
	"time"
)

// A busyEndpoint is a scheduler with one endpoint, a1, that responds in a
// millisecond, and all that was claimed for it.
type busyEndpoint struct {
	*endpoint
	tr      *Scheduler
	sent    []*Delivery
	loading []*Delivery // prefetched
}

func newBusyEndpoint(l testLimits, size int) *busyEndpoint {
	f := &busyEndpoint{tr: newTestScheduler(l)}
	f.tr.closeCircuits(l.PerEndpoint, "a1")
	f.endpoint = f.tr.remember("a1")
	f.observeLatency(time.Millisecond)
	f.observeSize(int64(size))
	f.claim(size)
	return f
}

// claim claims as many deliveries as there is room for.
func (f *busyEndpoint) claim(size int) {
	a := queues("a1")
	for {
		got := f.tr.fill(a, size)["a1"]
		if len(got) == 0 {
			return
		}
		for _, d := range got {
			if d.prefetched {
				f.loading = append(f.loading, d)
			} else {
				f.sent = append(f.sent, d)
			}
		}
	}
}

// load makes prefetched deliveries ready.
func (f *busyEndpoint) load() (sum Effect) {
	for _, d := range f.loading {
		sum.add(f.tr.Loaded(d))
	}
	f.loading = nil
	return sum
}

// finish ends and settles a request.
func (f *busyEndpoint) finish(d *Delivery, r Result, took time.Duration) (sum Effect) {
	sum.add(f.tr.End(d, r, took))
	sum.add(f.tr.Settle(d))
	return sum
}

func (e *Effect) add(other Effect) {
	e.Send, e.Return = append(e.Send, other.Send...), append(e.Return, other.Return...)
	e.Wake = e.Wake || other.Wake
}

// The scheduler claims again when half is left, not after each request.
func TestPrefetchIsFilledUpByHalves(t *testing.T) {
	t.Parallel()
	f := newBusyEndpoint(testLimits{Concurrency: 128, PerEndpoint: 2}, 1)
	f.load()
	woken := 0
	for range 80 {
		e := f.finish(f.sent[0], Success, time.Millisecond)
		if e.Wake {
			woken++
			f.claim(1)
			e.add(f.load())
		}
		f.sent = append(f.sent[1:], e.Send...)
	}
	if woken != 1 || f.prefetched != 70 || f.claims != 2 {
		t.Errorf("woken %d times, %d claims, %d prefetched", woken, f.claims, f.prefetched)
	}
}

func TestPrefetchedAmount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(h *endpoint)
		size  int
		want  int
	}{
		{"nothing before a success", func(h *endpoint) { h.latency = 0 }, 1, 0},
		{"nothing before the circuit closes", func(h *endpoint) { h.closed = false }, 1, 0},
		{"nothing beside a slow request", func(h *endpoint) { h.slowRequests = 1 }, 1, 0},
		{"little when it takes long", func(h *endpoint) { h.latency = 20 * time.Millisecond }, 1, 10},
		{"nothing when it takes too long", func(h *endpoint) { h.latency = time.Second }, 1, 0},
		{"at most what the fast bulkhead has", func(h *endpoint) { h.latency = time.Microsecond }, 1, 64},
		{"little when payloads are large", func(h *endpoint) { h.latency = time.Microsecond }, 100_000, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := newTestScheduler(testLimits{Concurrency: 64, PerEndpoint: 4})
			tr.closeCircuits(4, "a1")
			h := tr.remember("a1")
			h.observeLatency(time.Millisecond)
			h.observeSize(int64(tt.size))
			tt.spoil(h)
			a := queues("a1")
			for range 3 {
				tr.fill(a, tt.size)
			}
			if h.prefetched != tt.want {
				t.Errorf("%d prefetched, want %d", h.prefetched, tt.want)
			}
		})
	}
}

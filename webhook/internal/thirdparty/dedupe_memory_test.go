package thirdparty_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/webhook"
)

// handle begins and commits an event.
func handle(t *testing.T, d webhook.Deduper, id string) {
	t.Helper()
	if state := begin(t, d, id); state != webhook.Fresh {
		t.Fatalf("%s is %v, want fresh", id, state)
	}
	if err := d.Commit(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryDeduperExpiresEvents(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*webhook.MemoryOptions{
		"by default":       nil,
		"as told":          {TTL: time.Hour, Reservation: time.Second},
		"nothing positive": {Max: -1, TTL: -1, Reservation: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ttl, reservation := 24*time.Hour, time.Minute
				if name == "as told" {
					ttl, reservation = opts.TTL, opts.Reservation
				}
				d := webhook.NewMemoryDeduper(opts)
				handle(t, d, "done")
				time.Sleep(ttl - reservation)
				begin(t, d, "reserved")
				time.Sleep(reservation - time.Nanosecond)
				if a, b := begin(t, d, "done"), begin(t, d, "reserved"); a != webhook.Done || b != webhook.Busy {
					t.Errorf("just before: %v and %v", a, b)
				}
				time.Sleep(time.Nanosecond)
				if a, b := begin(t, d, "done"), begin(t, d, "reserved"); a != webhook.Fresh || b != webhook.Fresh {
					t.Errorf("then: %v and %v", a, b)
				}
			})
		})
	}
}

func TestMemoryDeduperDropsTheOldest(t *testing.T) {
	t.Parallel()
	for limit, opts := range map[int]*webhook.MemoryOptions{3: {Max: 3}, 10_000: nil} {
		d := webhook.NewMemoryDeduper(opts)
		for i := range limit + 2 {
			handle(t, d, fmt.Sprint(i))
		}
		// A fresh event takes the place of the oldest one: check it last.
		if a, b := begin(t, d, "2"), begin(t, d, "1"); a != webhook.Done || b != webhook.Fresh {
			t.Errorf("limit %d: the oldest within is %v, the next %v, want done and fresh", limit, a, b)
		}
	}
}

func TestMemoryDeduperIsFull(t *testing.T) {
	t.Parallel()
	now := newClock()
	d := webhook.NewMemoryDeduper(&webhook.MemoryOptions{Max: 2, Now: now.Now})
	begin(t, d, "1")
	begin(t, d, "2")
	state, err := d.Begin(t.Context(), "3")
	if err == nil || state != 0 || !strings.Contains(err.Error(), "2 events are being handled") {
		t.Errorf("Begin: got %v, %v", state, err)
	}
	if err := d.Commit(t.Context(), "4"); err == nil {
		t.Error("Commit of one that is not reserved: no error")
	}
	if err := d.Commit(t.Context(), "1"); err != nil {
		t.Errorf("Commit of one that is: %v", err)
	}
	if got := begin(t, d, "3"); got != webhook.Fresh {
		t.Errorf("once there is room: %v", got)
	}
	now.advance(time.Minute)
	if got := begin(t, d, "4"); got != webhook.Fresh {
		t.Errorf("once the reservations have lapsed: %v", got)
	}
}

// A modelEvent is an event in a simple model of MemoryDeduper.
type modelEvent struct {
	id    string
	state webhook.State
	until time.Time
}

// A model keeps events in the order in which they were begun or handled.
type model struct {
	limit  int
	now    time.Time
	events []modelEvent
}

func (m *model) drop(match func(modelEvent) bool) bool {
	i := slices.IndexFunc(m.events, match)
	if i >= 0 {
		m.events = slices.Delete(m.events, i, i+1)
	}
	return i >= 0
}

func (m *model) lapsed(e modelEvent) bool { return !e.until.After(m.now) }

// put adds an event, or fails if there is no room.
func (m *model) put(id string, state webhook.State, until time.Time) bool {
	if len(m.events) == m.limit &&
		!m.drop(func(e modelEvent) bool { return e.state == webhook.Busy && m.lapsed(e) }) &&
		!m.drop(func(e modelEvent) bool { return e.state == webhook.Done }) {
		return false
	}
	m.events = append(m.events, modelEvent{id, state, until})
	return true
}

func (m *model) forget() {
	m.events = slices.DeleteFunc(m.events, func(e modelEvent) bool { return e.state == webhook.Done && m.lapsed(e) })
}

func (m *model) begin(id string) (webhook.State, bool) {
	m.forget()
	m.drop(func(e modelEvent) bool { return e.id == id && m.lapsed(e) })
	if i := slices.IndexFunc(m.events, func(e modelEvent) bool { return e.id == id }); i >= 0 {
		return m.events[i].state, true
	}
	if !m.put(id, webhook.Busy, m.now.Add(10)) {
		return 0, false
	}
	return webhook.Fresh, true
}

func (m *model) commit(id string) bool {
	m.forget()
	if slices.ContainsFunc(m.events, func(e modelEvent) bool { return e.id == id && e.state == webhook.Done }) {
		return true
	}
	m.drop(func(e modelEvent) bool { return e.id == id })
	return m.put(id, webhook.Done, m.now.Add(100))
}

func TestMemoryDeduperAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{limit: rapid.IntRange(1, 4).Draw(t, "limit"), now: sentAt}
		d := webhook.NewMemoryDeduper(&webhook.MemoryOptions{
			Max: m.limit, TTL: 100, Reservation: 10, Now: func() time.Time { return m.now },
		})
		ids := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				got, err := d.Begin(t.Context(), id)
				if want, ok := m.begin(id); got != want || ok != (err == nil) {
					t.Fatalf("Begin %s: got %v, %v, want %v", id, got, err, want)
				}
			},
			"commit": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if err := d.Commit(t.Context(), id); m.commit(id) != (err == nil) {
					t.Fatalf("Commit %s: got %v", id, err)
				}
			},
			"abort": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				m.drop(func(e modelEvent) bool { return e.id == id && e.state == webhook.Busy })
				if err := d.Abort(t.Context(), id); err != nil {
					t.Fatalf("Abort %s: got %v", id, err)
				}
			},
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "by")))
			},
		})
	})
}

func BenchmarkMemoryDeduper(b *testing.B) {
	d := webhook.NewMemoryDeduper(nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint(i)
		if _, err := d.Begin(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		if err := d.Commit(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}

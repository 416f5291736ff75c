package thirdparty_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// handle begins and commits an event.
func handle(t *testing.T, d webhook.Deduper, id string) {
	t.Helper()
	if state := begin(t, d, id); state != webhook.Fresh {
		t.Fatalf("%s is %v, want fresh", id, state)
	}
	noError(t, d.Commit(t.Context(), id))
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

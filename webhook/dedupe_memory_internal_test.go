package webhook

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// At most Max events are kept, and their size doesn't depend on their identifiers.
func TestMemoryDeduperIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := NewMemoryDeduper(&MemoryOptions{Max: 10, Now: func() time.Time { return now }})
	for i := range 1000 {
		id := strings.Repeat("x", 1000) + strconv.Itoa(i)
		if i%3 == 0 {
			now = now.Add(time.Hour)
		}
		if _, err := d.Begin(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := d.Commit(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if n := d.reserved.Len() + d.done.Len(); n != len(d.events) || n > 10 {
			t.Fatalf("after %d events: %d in the lists, %d in the map", i, n, len(d.events))
		}
	}
	// Of an event's identifier only the key is kept.
	for _, element := range d.events {
		if e := entry(element); d.events[e.key] != element {
			t.Error("an event is kept under another key")
		}
	}
}

package webhook

import (
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"
)

// MemoryOptions are the optional settings of a [MemoryDeduper]. nil means all defaults; so does a
// number that isn't positive.
type MemoryOptions struct {
	// Max is the largest number of events to remember. Each takes about 300 bytes of memory,
	// however long its identifier. At the limit, the event that was handled longest ago is dropped.
	// Defaults to 10 000.
	Max int

	// TTL is how long a handled event is remembered. The service retries an event for 36 minutes;
	// operators may redeliver it at any time. Defaults to 24 hours.
	TTL time.Duration

	// Reservation is how long an event stays reserved if its handling neither succeeds nor fails.
	// It should be longer than handling takes. The service waits up to 30 seconds for an HTTP
	// response, and then at least 1 minute. Defaults to 1 minute.
	Reservation time.Duration

	// Now is the clock. It may be called by several goroutines at once. Defaults to [time.Now].
	Now func() time.Time
}

// A MemoryDeduper is a [Deduper] for a receiver that is one process and may handle an event again
// after a restart. Create it with [NewMemoryDeduper].
type MemoryDeduper struct {
	opts MemoryOptions

	mu     sync.Mutex
	events map[eventKey]*list.Element
	// Lists of *remembered, in the order in which they expire. Expired entries stay until they are
	// looked up or their room is needed.
	reserved, done list.List
}

var _ Deduper = (*MemoryDeduper)(nil)

// An eventKey is the hash of an identifier, which could be of any length.
type eventKey [sha256.Size]byte

// A remembered is an event that is reserved or done, until it expires.
type remembered struct {
	key   eventKey
	state State // Busy or Done
	until time.Time
}

// NewMemoryDeduper returns an empty MemoryDeduper.
func NewMemoryDeduper(opts *MemoryOptions) *MemoryDeduper {
	var o MemoryOptions
	if opts != nil {
		o = *opts
	}
	if o.Max <= 0 {
		o.Max = 10_000
	}
	if o.TTL <= 0 {
		o.TTL = 24 * time.Hour
	}
	if o.Reservation <= 0 {
		o.Reservation = defaultReservation
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &MemoryDeduper{opts: o, events: map[eventKey]*list.Element{}}
}

// defaultReservation is how long a reservation lasts by default.
const defaultReservation = time.Minute

// Begin implements [Deduper]. It fails if [MemoryOptions.Max] events are being handled. It ignores
// ctx.
func (d *MemoryDeduper) Begin(_ context.Context, id string) (State, error) {
	key, err := newEventKey(id)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Now()
	if element, ok := d.events[key]; ok {
		if e := entry(element); now.Before(e.until) {
			return e.state, nil
		}
		d.remove(element)
	}
	if err := d.makeRoom(now); err != nil {
		return 0, err
	}
	d.add(&d.reserved, &remembered{key: key, state: Busy, until: now.Add(d.opts.Reservation)})
	return Fresh, nil
}

// Commit implements [Deduper]. It fails if the expired reservation was dropped and
// [MemoryOptions.Max] other events are being handled now. It ignores ctx.
func (d *MemoryDeduper) Commit(_ context.Context, id string) error {
	key, err := newEventKey(id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Now()
	if element, ok := d.events[key]; ok {
		if e := entry(element); e.state == Done && now.Before(e.until) {
			return nil
		}
		d.remove(element)
	}
	if err := d.makeRoom(now); err != nil {
		return err
	}
	d.add(&d.done, &remembered{key: key, state: Done, until: now.Add(d.opts.TTL)})
	return nil
}

// Abort implements [Deduper]. It ignores ctx.
func (d *MemoryDeduper) Abort(_ context.Context, id string) error {
	key, err := newEventKey(id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if element, ok := d.events[key]; ok && entry(element).state == Busy {
		d.remove(element)
	}
	return nil
}

// newEventKey refuses an empty identifier, which would make all events without one the same.
func newEventKey(id string) (eventKey, error) {
	if id == "" {
		return eventKey{}, errors.New("webhook: identifier is empty")
	}
	return sha256.Sum256([]byte(id)), nil
}

// entry returns the value of an element of one of the lists.
func entry(element *list.Element) *remembered {
	return element.Value.(*remembered)
}

func (d *MemoryDeduper) add(to *list.List, e *remembered) {
	d.events[e.key] = to.PushBack(e)
}

func (d *MemoryDeduper) remove(element *list.Element) {
	e := entry(element)
	delete(d.events, e.key)
	if e.state == Done {
		d.done.Remove(element)
	} else {
		d.reserved.Remove(element)
	}
}

// makeRoom drops entries until one more event can be remembered: first expired reservations, then
// the events that were handled longest ago.
func (d *MemoryDeduper) makeRoom(now time.Time) error {
	for len(d.events) >= d.opts.Max {
		oldest := d.reserved.Front()
		if oldest == nil || now.Before(entry(oldest).until) {
			oldest = d.done.Front()
		}
		if oldest == nil {
			return fmt.Errorf("webhook: %d events are being handled at once", d.opts.Max)
		}
		d.remove(oldest)
	}
	return nil
}

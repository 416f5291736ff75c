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

// MemoryOptions are the optional settings of a [MemoryDeduper]. nil means all
// defaults, and so does a number that is not positive.
type MemoryOptions struct {
	// Max is the largest number of events to remember. It bounds the memory,
	// to about 300 bytes for each, however long the identifiers are. When it is
	// reached, the event that was handled longest ago is forgotten.
	// Defaults to 10 000.
	Max int

	// TTL is how long a handled event is remembered. The service repeats an
	// event for 36 minutes by itself, and whenever its operator wants.
	// Defaults to 24 hours.
	TTL time.Duration

	// Reservation is how long an event stays reserved whose handling neither
	// succeeds nor fails. It should be longer than handling takes. The service
	// waits 30 seconds for an answer, and then at least 1 minute.
	// Defaults to 1 minute.
	Reservation time.Duration

	// Now tells the time. It may be called by several goroutines at once.
	// Defaults to [time.Now].
	Now func() time.Time
}

// A MemoryDeduper is a [Deduper] for a receiver that is one process, and may
// handle an event again after a restart. Make it with [NewMemoryDeduper].
type MemoryDeduper struct {
	opts MemoryOptions

	mu     sync.Mutex
	events map[eventKey]*list.Element
	// Of *remembered, in the order in which they lapse. What has lapsed stays
	// until somebody asks for it or its room is needed.
	reserved, done list.List
}

var _ Deduper = (*MemoryDeduper)(nil)

// An eventKey is the hash of an identifier, which could be of any length.
type eventKey [sha256.Size]byte

// A remembered is an event that is reserved or done until some time.
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

// Begin is described at [Deduper]. It fails when [MemoryOptions.Max] events are
// being handled. It does not look at ctx.
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

// Commit is described at [Deduper]. It fails when the reservation was forgotten
// because it had lapsed, and now [MemoryOptions.Max] other events are being
// handled. It does not look at ctx.
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

// Abort is described at [Deduper]. It does not look at ctx.
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

// newEventKey refuses what would make all events without an identifier one.
func newEventKey(id string) (eventKey, error) {
	if id == "" {
		return eventKey{}, errors.New("webhook: identifier is empty")
	}
	return sha256.Sum256([]byte(id)), nil
}

// entry returns what an element of one of the lists holds, which is nothing else.
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

// makeRoom forgets what is worth least until one more event can be remembered: a
// reservation that has lapsed, otherwise what was handled longest ago.
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

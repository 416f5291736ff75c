package webhook

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// MemoryOptions are the optional settings of a [MemoryDeduper]. nil means all defaults; so does a
// number that isn't positive.
type MemoryOptions struct {
	// Max is the largest number of events to remember, at about 250 bytes each. At the limit, the
	// event that was handled longest ago is dropped. Defaults to 10 000.
	Max int

	// TTL is how long a handled event is remembered. The service retries an event for 36 minutes;
	// operators may redeliver it at any time. Defaults to 24 hours.
	TTL time.Duration

	// Reservation is how long an event stays reserved if its handling neither succeeds nor fails.
	// It should be longer than handling takes. Defaults to 1 minute.
	Reservation time.Duration

	// Now is the clock. It may be called by several goroutines at once. Defaults to [time.Now].
	Now func() time.Time
}

// A MemoryDeduper is a [Deduper] for a receiver that is one process and may handle an event again
// after a restart. Create it with [NewMemoryDeduper].
type MemoryDeduper struct {
	opts MemoryOptions

	mu     sync.Mutex
	events map[string]*list.Element
	order  list.List // of *remembered, in the order in which they were begun or handled
}

var _ Deduper = (*MemoryDeduper)(nil)

// A remembered is an event that is reserved or done. After its time it stays until it is looked up
// or its room is needed.
type remembered struct {
	id    string
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
	return &MemoryDeduper{opts: o, events: map[string]*list.Element{}}
}

// defaultReservation is how long a reservation lasts by default.
const defaultReservation = time.Minute

// Begin implements [Deduper]. It fails if [MemoryOptions.Max] events are being handled. It ignores
// ctx.
func (d *MemoryDeduper) Begin(_ context.Context, id string) (State, error) {
	return d.remember(id, Busy, d.opts.Reservation)
}

// Commit implements [Deduper]. It fails if the expired reservation was dropped and
// [MemoryOptions.Max] other events are being handled now. It ignores ctx.
func (d *MemoryDeduper) Commit(_ context.Context, id string) error {
	_, err := d.remember(id, Done, d.opts.TTL)
	return err
}

// Abort implements [Deduper]. It ignores ctx.
func (d *MemoryDeduper) Abort(_ context.Context, id string) error {
	if err := checkEventID(id); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if element, ok := d.events[id]; ok && entry(element).state == Busy {
		d.remove(element)
	}
	return nil
}

// remember changes the state of an event that is fresh, or from Busy to Done. It returns the state
// before.
func (d *MemoryDeduper) remember(id string, state State, period time.Duration) (State, error) {
	if err := checkEventID(id); err != nil {
		return 0, fmt.Errorf("webhook: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Now()
	if element, ok := d.events[id]; ok {
		if e := entry(element); now.Before(e.until) && (e.state == Done || state == Busy) {
			return e.state, nil
		}
		d.remove(element)
	}
	if err := d.makeRoom(now); err != nil {
		return 0, err
	}
	d.events[id] = d.order.PushBack(&remembered{id: id, state: state, until: now.Add(period)})
	return Fresh, nil
}

func entry(element *list.Element) *remembered { return element.Value.(*remembered) }

func (d *MemoryDeduper) remove(element *list.Element) {
	delete(d.events, entry(element).id)
	d.order.Remove(element)
}

// makeRoom drops the oldest event that isn't being handled, if there is no room for another one.
func (d *MemoryDeduper) makeRoom(now time.Time) error {
	if len(d.events) < d.opts.Max {
		return nil
	}
	for element := d.order.Front(); element != nil; element = element.Next() {
		if e := entry(element); e.state == Done || !now.Before(e.until) {
			d.remove(element)
			return nil
		}
	}
	return fmt.Errorf("webhook: %d events are being handled at once", d.opts.Max)
}

// Package memory keeps everything of a service in memory. It is for tests, for
// trying things out, and for reading: it says in plain maps and slices what
// [formsvc.Store] and [delivery.Queue] ask of every store. What it keeps is gone
// with the process.
package memory

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Store is a [formsvc.Store] and a [delivery.Queue] without durability. Make
// it with [New]. It is safe for concurrent use; one mutex makes every method
// one unit. The functions that decide an update run while it is held, so they
// must not call the store.
type Store struct {
	identity  formsvc.ID
	mu        sync.Mutex
	accounts  table[*account]
	names     map[string]*account // the accounts by name
	keys      map[[sha256.Size]byte]*formsvc.Key
	endpoints table[*endpoint] // the webhooks of all accounts
	events    map[formsvc.ID]*event
	commits   int64                   // the position of the newest event
	files     table[*formsvc.File]    // of all accounts
	barred    map[formsvc.ID]bool     // identifiers that no file may have
	comments  table[*formsvc.Comment] // of all accounts, like the next
	signed    table[*formsvc.Signature]
	records   map[recordKey]*formsvc.IdempotencyRecord
	audited   map[formsvc.ID]bool // the identifiers of all audit entries
	quota     map[quotaWindow]int // requests counted
	links     table[*formsvc.Link]
	sessions  table[*formsvc.Session]

	closed chan struct{}
	wake   chan struct{} // holds one token while there may be new work
}

var (
	_ formsvc.Store  = (*Store)(nil)
	_ delivery.Queue = (*Store)(nil)
)

// An account holds what belongs to it, so that whoever looks inside one account
// can't find anything of another.
type account struct {
	formsvc.Account
	keys       table[*formsvc.Key]
	campaigns  table[*campaign]
	webhooks   table[*endpoint]
	references map[string]bool // those that are taken
	events     []*event        // in the order of their positions
	notices    table[*notice]  // by delivery
	audit      table[*formsvc.AuditEntry]
}

type campaign struct {
	formsvc.Campaign
	responses table[*response]
}

type response struct {
	formsvc.Response
	files      table[*formsvc.File]
	comments   table[*formsvc.Comment]
	signatures table[*formsvc.Signature]
}

// An event is kept with its place among all events.
type event struct {
	formsvc.Event
	position int64
}

// An endpoint is a webhook with its deliveries.
type endpoint struct {
	formsvc.Webhook
	deliveries table[*queued]
	waiting    [kinds][]*queued // the pending ones by kind, those in an attempt included, by DueAt
	digest     digest
}

// kinds is how many a [delivery.Kind] has.
const kinds = 3

// A queued is a delivery with its claim. While it is claimed, DueAt is the end
// of the lease: the next attempt may start then, unless this one is finished.
type queued struct {
	formsvc.Delivery
	kind  delivery.Kind
	size  int // of the payload in bytes
	lease int64
}

func (d *queued) claimed() bool { return !d.SendingSince.IsZero() }

// A notice also knows who is about to pass it on.
type notice struct {
	formsvc.Notice
	noted bool
	until time.Time // the end of the lease; zero when nobody ever had one
}

// A digest is what a webhook's owner was not told of yet.
type digest struct {
	untold   []formsvc.Notice // in the order in which they were recorded
	claimed  bool
	lease    int64
	until    time.Time // the end of the lease
	finished time.Time // when the last one was sent; zero when none was
}

// New returns an empty store.
func New() *Store {
	return &Store{
		identity: formsvc.NewID(time.Now()),

		names:   make(map[string]*account),
		keys:    make(map[[sha256.Size]byte]*formsvc.Key),
		events:  make(map[formsvc.ID]*event),
		barred:  make(map[formsvc.ID]bool),
		records: make(map[recordKey]*formsvc.IdempotencyRecord),
		audited: make(map[formsvc.ID]bool),
		closed:  make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
}

// Close ends the store's use: every other method fails with
// [formsvc.ErrStoreClosed] from then on, and waits in progress end so. Closing
// again does nothing. The error is always nil.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isClosed() {
		close(s.closed)
	}
	return nil
}

// Identity implements [formsvc.MaintenanceStore]. Each store has its own.
func (s *Store) Identity(ctx context.Context) (formsvc.ID, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	return s.identity, nil
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// enter begins a unit. When it returns nil, the caller has to unlock s.mu.
func (s *Store) enter(ctx context.Context) error {
	s.mu.Lock()
	err := ctx.Err() // asked with the lock held: it may have ended while the unit waited
	if s.isClosed() {
		err = formsvc.ErrStoreClosed
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// kept returns t as it is kept: in UTC, cut to microseconds.
func kept(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

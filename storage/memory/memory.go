// Package memory keeps all data of a service in memory. It is for tests, for trials, and
// as a reference: it implements in plain maps and slices what [formsvc.Store] and
// [delivery.Queue] ask of every store. Its data is lost when the process ends.
package memory

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Store is a [formsvc.Store] and a [delivery.Queue] without durability. Create it with
// [New]. It is safe for concurrent use; one mutex makes every method atomic. Functions
// that decide an update run while the mutex is held, so they must not call the store.
type Store struct {
	identity  formsvc.ID
	mu        sync.Mutex
	accounts  table[*account]
	keys      table[*formsvc.Key] // of all accounts, like the others
	campaigns table[*campaign]
	endpoints table[*endpoint] // the webhooks
	events    map[formsvc.ID]*event
	commits   int64 // position of the newest event
	files     table[*formsvc.File]
	barred    map[formsvc.ID]bool // identifiers that no file may have
	comments  table[*formsvc.Comment]
	signed    table[*formsvc.Signature]
	notices   table[*notice] // by delivery
	audit     table[*formsvc.AuditEntry]
	records   map[recordKey]*formsvc.IdempotencyRecord
	quota     map[quotaWindow]int // requests counted
	links     table[*formsvc.Link]
	sessions  table[*formsvc.Session]
	members   table[*formsvc.Member]

	closed chan struct{}
	wake   chan struct{} // holds one token while there may be new work for Wait
}

var (
	_ formsvc.Store  = (*Store)(nil)
	_ delivery.Queue = (*Store)(nil)
)

// An account is stored with its counters and events.
type account struct {
	formsvc.Account
	fileBytes  int64
	references map[string]bool // references that are taken
	events     []*event        // in the order of their positions
}

type campaign struct {
	formsvc.Campaign
	responses table[*response]
}

type response struct {
	formsvc.Response
	places []formsvc.Place
}

// An event is stored with its position among all events.
type event struct {
	formsvc.Event
	position int64
}

// An endpoint is a webhook with its deliveries.
type endpoint struct {
	formsvc.Webhook
	deliveries table[*queued]
	waiting    [kinds][]*queued // pending deliveries by kind, including those in an attempt, by DueAt
	digest     digest
}

// kinds is the number of values of [delivery.Kind].
const kinds = 3

// A queued is a delivery with its claim. While it is claimed, DueAt is the end of the
// lease: unless the attempt is finished, the next one may start then.
type queued struct {
	formsvc.Delivery
	kind  delivery.Kind
	size  int // of the payload in bytes
	lease int64
}

func (d *queued) claimed() bool { return !d.SendingSince.IsZero() }

// A notice is stored with the lease of its claim.
type notice struct {
	formsvc.Notice
	noted bool
	until time.Time // end of the lease; zero if it was never claimed
}

// A digest has the failures that a webhook's owner hasn't been told of.
type digest struct {
	untold   []formsvc.Notice // in the order they were recorded
	claimed  bool
	lease    int64
	until    time.Time // end of the lease
	finished time.Time // when the last digest was sent; zero if none was
}

// New returns an empty store.
func New() *Store {
	return &Store{
		identity: formsvc.NewID(time.Now()),

		events:  make(map[formsvc.ID]*event),
		barred:  make(map[formsvc.ID]bool),
		records: make(map[recordKey]*formsvc.IdempotencyRecord),
		closed:  make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
}

// Close makes every other method fail with [formsvc.ErrStoreClosed], and ends Waits under
// way with that error. Closing again does nothing. The error is always nil.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isClosed() {
		close(s.closed)
	}
	return nil
}

// Identity implements [formsvc.Store]. Each store has its own.
func (s *Store) Identity(ctx context.Context) (formsvc.ID, error) {
	return locked(ctx, s, func() (formsvc.ID, error) {
		return s.identity, nil
	})
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// enter begins a call. If it returns nil, the caller has to unlock s.mu.
func (s *Store) enter(ctx context.Context) error {
	s.mu.Lock()
	err := ctx.Err() // with the lock held: ctx may have ended while the call waited
	if s.isClosed() {
		err = formsvc.ErrStoreClosed
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// locked runs a function with the lock held.
func locked[T any](ctx context.Context, s *Store, do func() (T, error)) (none T, _ error) {
	if err := s.enter(ctx); err != nil {
		return none, err
	}
	defer s.mu.Unlock()
	return do()
}

// read finds a row by its key, and returns a copy of it or of a part, made by out.
func read[K, R, T any](ctx context.Context, s *Store, find func(K) (R, error), key K, out func(R) T) (T, error) {
	return locked(ctx, s, func() (none T, _ error) {
		row, err := find(key)
		if err != nil {
			return none, err
		}
		return out(row), nil
	})
}

// stored returns a record as it is kept: it shares no memory with the caller's, and its times are in UTC. It fails if a text can't be
// kept by every store.
func stored[T any](record *T) (T, error) {
	c := *record
	return c, own(reflect.ValueOf(&c).Elem())
}

// copyOf returns a copy of a record that shares no memory with it.
func copyOf[T any](record *T) T {
	c, _ := stored(record)
	return c
}

// own gives a value its own memory, and checks its texts.
func own(v reflect.Value) (err error) {
	switch x := v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(kept(x)))
		return nil
	case formsvc.Answers:
		return formsvc.CheckText(x.JSON())
	}
	switch v.Kind() {
	case reflect.String:
		return formsvc.CheckText(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			err = errors.Join(err, own(v.Field(i)))
		}
	case reflect.Slice:
		v.Set(reflect.AppendSlice(reflect.Zero(v.Type()), v))
		for i := 0; i < v.Len() && v.Type().Elem().Kind() != reflect.Uint8; i++ {
			err = errors.Join(err, own(v.Index(i)))
		}
	case reflect.Map:
		fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
		for key, value := range v.Seq2() {
			err = errors.Join(err, formsvc.CheckText(key.String(), value.String()))
			fresh.SetMapIndex(key, value)
		}
		if !v.IsNil() {
			v.Set(fresh)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fresh := reflect.New(v.Type().Elem())
			fresh.Elem().Set(v.Elem())
			v.Set(fresh)
			err = own(fresh.Elem())
		}
	default: // a number, a bool or an array of bytes
	}
	return err
}

// kept returns t as stored: in UTC, truncated to microseconds.
func kept(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

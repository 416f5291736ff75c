package formsvc_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// TestMain checks that no goroutines are left running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is the initial time of the tests' clocks.
func start() time.Time { return time.Date(2026, 11, 21, 8, 30, 0, 123e6, time.UTC) }

// A clock is set by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *clock) add(d time.Duration) { c.set(c.Now().Add(d)) }

// numbered returns a function that returns the IDs …01, …02 and so on.
func numbered() func(time.Time) formsvc.ID {
	var (
		mu sync.Mutex
		n  int
	)
	return func(t time.Time) formsvc.ID {
		mu.Lock()
		defer mu.Unlock()
		n++
		return formsvc.FloorID(t)[:24] + formsvc.ID(fmt.Sprintf("%012x", n))
	}
}

// references returns a function that returns REF-00001, REF-00002 and so on.
func references() func() string {
	var (
		mu sync.Mutex
		n  int
	)
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("REF-%05d", n)
	}
}

// A watchedStore counts calls and records the written events. It can run a function before a call,
// whose error the call then returns.
type watchedStore struct {
	formsvc.Store
	before func(method string, call int) error // call is 1 for the first call; may be nil
	after  func(method string) error           // returns the error of a call after its effect; may be nil
	alter  func(*formsvc.File)                 // changes returned files of all accounts; may be nil
	twice  bool                                // calls decide twice, as a store may

	mu    sync.Mutex
	calls map[string]int
	seen  formsvc.EventPosition // of the last take
	pages []int                 // numbers of responses on the pages that were read
}

func (s *watchedStore) enter(method string) error {
	s.mu.Lock()
	if s.calls == nil {
		s.calls = make(map[string]int)
	}
	s.calls[method]++
	n, before := s.calls[method], s.before
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(method, n)
}

// disturb sets the function that runs before calls, and resets the counters.
func (s *watchedStore) disturb(before func(method string, call int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.before = nil, before
}

func (s *watchedStore) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// take returns the events since the last take.
func (s *watchedStore) take() (events []formsvc.Event) {
	q := formsvc.EventQuery{AllAccounts: true, After: s.seen, Limit: formsvc.MaxLimit, MaxBytes: 1 << 30}
	for more := true; more; {
		page, err := s.Events(context.Background(), q)
		if err != nil {
			panic(err)
		}
		events, more, q.After = append(events, page.Items...), page.More, page.Next
	}
	s.seen = q.After
	return events
}

func (s *watchedStore) KeyByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Key, error) {
	if err := s.enter("KeyByHash"); err != nil {
		return formsvc.Key{}, err
	}
	return s.Store.KeyByHash(ctx, hash)
}

func (s *watchedStore) Campaign(ctx context.Context, key formsvc.CampaignKey) (formsvc.Campaign, error) {
	if err := s.enter("Campaign"); err != nil {
		return formsvc.Campaign{}, err
	}
	return s.Store.Campaign(ctx, key)
}

func (s *watchedStore) CreateResponse(
	ctx context.Context, r formsvc.Response, version int64, change formsvc.Change,
) error {
	if err := s.enter("CreateResponse"); err != nil {
		return err
	}
	return s.Store.CreateResponse(ctx, r, version, change)
}

func (s *watchedStore) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	if err := s.enter("UpdateResponse"); err != nil {
		return formsvc.Response{}, err
	}
	return s.Store.UpdateResponse(ctx, key, func(r *formsvc.Response) (formsvc.Change, error) {
		if s.twice {
			trial := *r
			if _, err := decide(&trial); err != nil {
				return formsvc.Change{}, err
			}
		}
		return decide(r)
	})
}

func (s *watchedStore) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (formsvc.Webhook, error) {
	if err := s.enter("UpdateWebhook"); err != nil {
		return formsvc.Webhook{}, err
	}
	return s.Store.UpdateWebhook(ctx, key, decide)
}

func (s *watchedStore) Erase(ctx context.Context, q formsvc.EraseQuery) (formsvc.Erased, error) {
	if err := s.enter("Erase"); err != nil {
		return formsvc.Erased{}, err
	}
	out, err := s.Store.Erase(ctx, q)
	if err == nil && s.after != nil {
		err = s.after("Erase")
	}
	return out, err
}

// A world is a service with one account over a watched store in memory.
type world struct {
	tb      testing.TB
	ctx     context.Context
	clock   *clock
	store   *watchedStore
	svc     *formsvc.Service
	account formsvc.ID
}

func newWorld(tb testing.TB, edits ...func(*formsvc.Options)) *world {
	tb.Helper()
	kept := memory.New()
	tb.Cleanup(func() { _ = kept.Close() })
	w := &world{
		tb: tb, ctx: context.Background(), clock: &clock{now: start()}, store: &watchedStore{Store: kept},
	}
	o := formsvc.Options{Now: w.clock.Now, NewID: numbered(), NewReference: references()}
	for _, edit := range edits {
		edit(&o)
	}
	var err error
	if w.svc, err = formsvc.New(w.store, &o); err != nil {
		tb.Fatal(err)
	}
	account, err := w.svc.Accounts.Create(w.ctx, "first")
	if err != nil {
		tb.Fatal(err)
	}
	w.account = account.ID
	return w
}

// neighbour returns a second service over the same store, like another node.
func (w *world) neighbour(edits ...func(*formsvc.Options)) *formsvc.Service {
	w.tb.Helper()
	o := formsvc.Options{Now: w.clock.Now}
	for _, edit := range edits {
		edit(&o)
	}
	svc, err := formsvc.New(w.store.Store, &o)
	if err != nil {
		w.tb.Fatal(err)
	}
	return svc
}

func (w *world) campaign(modules ...formsvc.Module) formsvc.Campaign {
	w.tb.Helper()
	c, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "Summer grant", Modules: modules})
	if err != nil {
		w.tb.Fatal(err)
	}
	return c
}

// ada returns a valid user.
func ada() formsvc.User {
	return formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"}
}

func answer(name string, value ...string) formsvc.Answer {
	return formsvc.Answer{Name: name, Value: value}
}

// submit creates a response of ada's.
func (w *world) submit(c *formsvc.Campaign, answers ...formsvc.Answer) (formsvc.Response, error) {
	return w.svc.Responses.Create(w.ctx, c.Key(), formsvc.ResponseInput{User: ada(), Answers: answers})
}

func (w *world) submitted(c *formsvc.Campaign, answers ...formsvc.Answer) formsvc.Response {
	w.tb.Helper()
	r, err := w.submit(c, answers...)
	if err != nil {
		w.tb.Fatal(err)
	}
	return r
}

func (w *world) update(r *formsvc.Response, patch formsvc.ResponsePatch) (formsvc.Response, error) {
	return w.svc.Responses.Update(w.ctx, r.Key(), patch)
}

func (w *world) updated(r *formsvc.Response, patch formsvc.ResponsePatch) formsvc.Response {
	w.tb.Helper()
	after, err := w.update(r, patch)
	if err != nil {
		w.tb.Fatal(err)
	}
	return after
}

// faults returns the faults of a *ValidationError as "pointer code", or the text of any other
// error.
func faults(err error) []string {
	if err == nil {
		return nil
	}
	v, ok := errors.AsType[*formsvc.ValidationError](err)
	if !ok {
		return []string{err.Error()}
	}
	var list []string
	for _, f := range v.Fields {
		list = append(list, f.Pointer+" "+f.Code)
	}
	return list
}

// wantFaults fails the test unless err lists exactly these faults in this order. Without faults err
// must be nil.
func wantFaults(tb testing.TB, err error, want ...string) {
	tb.Helper()
	if got := faults(err); !slices.Equal(got, want) {
		tb.Errorf("got  %q\nwant %q", got, want)
	}
	if err != nil && !errors.Is(err, formsvc.ErrInvalid) {
		tb.Errorf("%v is not ErrInvalid", err)
	}
}

func wantError(tb testing.TB, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("got error %v, want %v", err, want)
	}
}

// eventTypes returns the types of events.
func eventTypes(events []formsvc.Event) []formsvc.EventType {
	var types []formsvc.EventType
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

func (s *watchedStore) CreateFile(
	ctx context.Context, f formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error),
) error {
	if err := s.enter("CreateFile"); err != nil {
		return err
	}
	err := s.Store.CreateFile(ctx, f, decide)
	if err == nil && s.after != nil {
		err = s.after("CreateFile")
	}
	return err
}

func (s *watchedStore) Files(ctx context.Context, q formsvc.FileQuery) (formsvc.Page[formsvc.File], error) {
	page, err := s.Store.Files(ctx, q)
	for i := range page.Items {
		if q.AllAccounts && s.alter != nil {
			s.alter(&page.Items[i])
		}
	}
	return page, err
}

// running runs the regular work of a service until stop is called.
func running(svc *formsvc.Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = svc.Run(ctx) // always nil
	}()
	return func() {
		cancel()
		<-done
	}
}

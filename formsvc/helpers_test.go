package formsvc_test

import (
	"context"
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

// must returns the result of a call that can't fail here. Programs check errors.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// someID is the ID of no record.
const someID formsvc.ID = "01890000-0000-7000-8000-000000000000"

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
	w.svc = must(formsvc.New(w.store, &o))
	account := must(w.svc.Accounts.Create(w.ctx, "first"))
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
	return must(formsvc.New(w.store.Store, &o))
}

func (w *world) campaign(modules ...formsvc.Module) formsvc.Campaign {
	return must(w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "Summer grant", Modules: modules}))
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
	return must(w.submit(c, answers...))
}

func (w *world) update(r *formsvc.Response, patch formsvc.ResponsePatch) (formsvc.Response, error) {
	return w.svc.Responses.Update(w.ctx, r.Key(), patch)
}

func (w *world) updated(r *formsvc.Response, patch formsvc.ResponsePatch) formsvc.Response {
	return must(w.update(r, patch))
}

// events returns all events.
func (w *world) events() []formsvc.Event {
	return must(w.svc.Events.List(w.ctx, formsvc.EventQuery{AccountID: w.account, Limit: formsvc.MaxLimit})).Items
}

// deliveries returns the number of a webhook's deliveries in a state; "" means any.
func (w *world) deliveries(hook *formsvc.Webhook, state formsvc.DeliveryState) int {
	return int(must(w.svc.Deliveries.List(w.ctx, formsvc.DeliveryQuery{AccountID: w.account, WebhookID: hook.ID, State: state})).Total)
}

// trail returns the audit trail, oldest entry first.
func (w *world) trail() []formsvc.AuditEntry {
	return must(w.svc.Audits.List(w.ctx, formsvc.AuditQuery{
		AccountID: w.account, Page: formsvc.PageQuery{Ascending: true, Limit: formsvc.MaxLimit},
	})).Items
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
	equalAll(tb, faults(err), want, "got  %q")
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

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal fails the test unless got is want. The format has a verb for each argument, and the last one for got.
func equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf(format+", want %v", append(slices.Clone(args), got, want)...)
	}
}

// equalAll is equal for lists.
func equalAll[T comparable](t testing.TB, got, want []T, format string, args ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf(format+", want %v", append(slices.Clone(args), got, want)...)
	}
}

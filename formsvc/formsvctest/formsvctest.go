// Package formsvctest has a forms service for tests of host programs: in memory, with a clock that the test sets, one line for each
// record that a test needs, and the events that webhooks would get. It starts no goroutine, and nothing in it waits.
//
// The store in memory can't be bound to a transaction ([formsvc.Service.With]). To test that, open a database of the test's own with
// storage/sqlite, as a file in [testing.TB.TempDir], and pass it as [Options].Store.
package formsvctest

import (
	"cmp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
)

// Options changes the service of a test. The zero value is ready for use.
type Options struct {
	// Service has the options of the service: Now is replaced by the clock, and Blobs defaults to a store in memory.
	Service formsvc.Options
	// Store has the service's records; the test closes it. Defaults to a store in memory.
	Store formsvc.Store
	// Start is the clock's first time. Defaults to 9 o'clock UTC on 1 June 2026, so that every run of a test is the same.
	Start time.Time
}

// A Service is a service for one test. Its methods end the test if they fail, so only the test's own goroutine may call them.
type Service struct {
	*formsvc.Service

	Store     formsvc.Store
	AccountID formsvc.ID // of an account that has nothing yet

	t    testing.TB
	seen formsvc.Cursor // the last event that Events returned
	now  atomic.Pointer[time.Time]
}

// New returns a service with an account. opts may be nil.
func New(t testing.TB, opts *Options) *Service {
	t.Helper()
	o := *cmp.Or(opts, &Options{})
	s := &Service{t: t, Store: o.Store}
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC)
	}
	s.Set(o.Start)
	if o.Store == nil {
		store := memory.New()
		t.Cleanup(func() { _ = store.Close() }) // always nil
		s.Store = store
	}
	if o.Service.Now = s.Now; o.Service.Blobs == nil {
		o.Service.Blobs = memblob.New()
	}
	var err error
	s.Service, err = formsvc.New(s.Store, &o.Service)
	s.must(err)
	account, err := s.Accounts.Create(t.Context(), "test")
	s.must(err)
	s.AccountID = account.ID
	return s
}

func (s *Service) must(err error) {
	if s.t.Helper(); err != nil {
		s.t.Fatal(err)
	}
}

// Now returns the time of the clock, which is also that of the service. Any goroutine may call it.
func (s *Service) Now() time.Time { return *s.now.Load() }

// Set changes the time, also to an earlier one.
func (s *Service) Set(now time.Time) { s.now.Store(&now) }

// Advance adds to the time.
func (s *Service) Advance(d time.Duration) { s.Set(s.Now().Add(d)) }

// Campaign creates an open campaign of the account with these questions, whose public form is enabled.
func (s *Service) Campaign(modules ...formsvc.Module) *formsvc.Campaign {
	s.t.Helper()
	c, err := s.Campaigns.Create(s.t.Context(), s.AccountID, formsvc.CampaignInput{
		Title: "Test", Modules: modules, Form: formsvc.Form{Enabled: true},
	})
	s.must(err)
	return &c
}

// Response creates a response of ada@example.com to a campaign.
func (s *Service) Response(c *formsvc.Campaign, answers ...formsvc.Answer) *formsvc.Response {
	s.t.Helper()
	r, err := s.Responses.Create(s.t.Context(), c.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"}, Answers: answers,
	})
	s.must(err)
	return &r
}

// Key creates an API key of the account, and returns what clients send. Without permissions it has all of them.
func (s *Service) Key(permissions ...formsvc.Permission) string {
	s.t.Helper()
	if len(permissions) == 0 {
		permissions = formsvc.AllPermissions()
	}
	key, err := s.Keys.Create(s.t.Context(), s.AccountID, formsvc.KeyInput{Name: "test", Permissions: permissions})
	s.must(err)
	return key.Value
}

// Events returns the events since its last call, of all accounts and in the order of their commits, as receivers parse them. It has
// those that webhooks get only if they name them, too.
func (s *Service) Events() (events []webhook.Event) {
	s.t.Helper()
	for more := true; more; {
		page, err := s.Store.AllEvents(s.t.Context(), formsvc.EventQuery{After: s.seen, Limit: formsvc.MaxLimit}.Clamped())
		s.must(err)
		for i := range page.Items {
			event, err := webhook.ParseEvent(page.Items[i].Payload)
			s.must(err)
			events = append(events, event)
		}
		s.seen, more = page.Next, page.More
	}
	return events
}

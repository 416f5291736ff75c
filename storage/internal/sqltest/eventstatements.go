package sqltest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// What [FillEvents] creates: for each response some events with it and some about it
// later, each with a delivery; and links, sessions and keys of one account.
const (
	eventResponses = 100
	eventsMadeWith = 90
	eventsAbout    = 10
	eventSigned    = 3_000
	eventsAsked    = 10
)

// MostEvents is how many rows of a table a statement of [EventStatements] may need to
// read: all events about one response, and those asked for.
const MostEvents = eventsMadeWith + eventsAbout + 3*eventsAsked

// An EventScene has the records of [FillEvents] that statements use.
type EventScene struct {
	Account, Campaign, Response formsvc.ID
	MadeWith                    string // identifiers of the events created with the response, separated by commas
	Keys                        []formsvc.ID

	hook  formsvc.ID
	event formsvc.ID
	hash  [sha256.Size]byte // of a session
}

// FillEvents creates an account with many events, deliveries, sessions and keys.
func FillEvents(t *testing.T, db *bun.DB, store Store) *EventScene {
	t.Helper()
	s := &scene{Store: store, now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	s.fill(t)
	e := &EventScene{Account: s.account, Campaign: s.campaign.ID, hook: s.hook.ID}
	for n := range eventResponses {
		r, change := s.response(fmt.Sprintf("R%d", n))
		change.Events = s.repeated(change.Events[0], eventsMadeWith)
		e.Response, e.event, e.MadeWith = r.ID, change.Events[0].ID, bunstore.EventIDs(&change)
		must(t, s.CreateResponse(t.Context(), r, 1, change))
		change.Events = s.repeated(change.Events[0], eventsAbout)
		_, err := s.UpdateResponse(t.Context(), formsvc.ResponseKey{AccountID: s.account, CampaignID: s.campaign.ID, ID: r.ID},
			func(r *formsvc.Response) (formsvc.Change, error) {
				r.Version++
				return change, nil
			})
		must(t, err)
		s.attempted(t)
	}
	e.sign(t, db, s)
	return e
}

// sign creates keys, links and sessions.
func (e *EventScene) sign(t *testing.T, db *bun.DB, s *scene) {
	t.Helper()
	for _, table := range []string{"keys", "links", "sessions"} {
		rows := make([]string, eventSigned)
		for n := range rows {
			id := s.id()
			e.hash = sha256.Sum256([]byte(id))
			hash := fmt.Sprintf("X'%x'", e.hash)
			if db.Dialect().Name() == dialect.PG {
				hash = fmt.Sprintf(`'\x%x'`, e.hash)
			}
			rows[n] = fmt.Sprintf("('%s', '%s', %s, 0, %d)", id, s.account, hash, n)
			if table == "keys" {
				rows[n] = fmt.Sprintf("('%s', '%s', 'k', 'p', %s, '', 0, 0, 0, 0)", id, s.account, hash)
				e.Keys = append(e.Keys, id)
			}
		}
		_, err := db.ExecContext(t.Context(), "INSERT INTO formsvc_"+table+" VALUES "+strings.Join(rows, ", "))
		must(t, err)
	}
}

// repeated returns n events like e with new identifiers.
func (s *scene) repeated(e formsvc.Event, n int) []formsvc.Event {
	events := slices.Repeat([]formsvc.Event{e}, n)
	for i := range events {
		events[i].ID = s.id()
	}
	return events
}

// attempted makes an attempt of every due delivery.
func (s *scene) attempted(t *testing.T) {
	t.Helper()
	var outcomes []delivery.Outcome
	for _, c := range s.claim(t, s.now) {
		outcomes = append(outcomes, delivery.Outcome{
			ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: delivery.Delivered, Attempt: delivery.Attempt{StartedAt: s.now},
		})
	}
	_, err := s.Finish(t.Context(), outcomes)
	must(t, err)
}

// EventStatements makes the calls of the settings pages, and passes each statement that
// bun builds to look. open returns a store on a database of the caller.
func (e *EventScene) EventStatements(t *testing.T, db *bun.DB, open func(*bun.DB) Store, look func(call, statement string)) {
	t.Helper()
	ctx := t.Context()
	r := &recorder{}
	s := open(db.WithQueryHook(r))
	deliveries := func(page formsvc.PageQuery) func() (int, error) {
		return func() (int, error) {
			page.Limit = eventsAsked
			got, err := s.Deliveries(ctx, formsvc.DeliveryQuery{AccountID: e.Account, WebhookID: e.hook, Page: page, NoTotal: true})
			return len(got.Items), err
		}
	}
	middle := formsvc.DeliveryID(e.event, e.hook)
	for name, call := range map[string]func() (int, error){
		"Event": func() (int, error) { _, err := s.Event(ctx, e.Account, e.event); return eventsAsked, err },
		"RecentEvents": func() (int, error) {
			got, err := s.RecentEvents(ctx, formsvc.RecentQuery{AccountID: e.Account, Limit: eventsAsked})
			return len(got), err
		},
		"SessionByHash":              func() (int, error) { _, err := s.SessionByHash(ctx, e.hash); return eventsAsked, err },
		"Deliveries":                 deliveries(formsvc.PageQuery{}),
		"Deliveries ascending":       deliveries(formsvc.PageQuery{Ascending: true}),
		"Deliveries from the middle": deliveries(formsvc.PageQuery{Ascending: true, After: middle[:14] + "7800-8000-000000000000"}),
	} {
		r.statements = nil
		n, err := call()
		must(t, err)
		if n != eventsAsked || len(r.statements) == 0 {
			t.Errorf("%s: %d records, %d statements", name, n, len(r.statements))
		}
		for _, statement := range r.statements {
			look(name, statement)
		}
	}
}
